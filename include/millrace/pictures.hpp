// Everything about pictures: plans, crops, the encoder. An umbrella: includes only.
#pragma once

#include <millrace/stages/image/crop_draw.hpp>
#include <millrace/stages/image/jpeg_encoder.hpp>
#include <millrace/stages/image/picture.hpp>
