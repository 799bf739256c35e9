// The same as cuda_runtime_api.h: the fake runtime has no templates and no launch syntax.
#pragma once

#include <cuda_runtime_api.h>
