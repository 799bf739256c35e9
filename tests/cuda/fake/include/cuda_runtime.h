// The same as cuda_runtime_api.h: the stand-in has no templates and no launch syntax.
#pragma once

#include <cuda_runtime_api.h>
