// Everything about pictures: plans, crops, the encoder. An umbrella: includes only.
#pragma once

#include <millrace/image/crop_draw.hpp>
#include <millrace/image/jpeg_encoder.hpp>
#include <millrace/image/picture.hpp>
