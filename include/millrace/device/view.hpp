// Includes the headers that a .cu file with a training step needs: tensor views and stream handles.
//
//   #include <millrace/device/view.hpp>
//   void train_step(mr::tensor_view<const std::uint8_t, 4> pixels, mr::tensor_view<const int, 1> labels,
//                   mr::stream_view stream);
#pragma once

#include <millrace/device/stream.hpp>
#include <millrace/item/tensor/tensor_view.hpp>
