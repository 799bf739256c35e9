// The JPEG format for image plans. picture_renderer.hpp renders its images.
//
//   mr::picture p(file, mr::detail::picture_file{.format = &mr::detail::jpeg_format, .header = header});
//
// Errors: see picture_renderer.hpp. Threads: any; each thread passes its own scratch.
#pragma once

#include <millrace/image/render/picture_format.hpp>

#include <span>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Renders JPEG jobs (one per image) with the picture_renderer in `s`, the worker's working memory.
void render_jpegs(std::span<const picture_job> jobs, scratch& s);

inline constexpr picture_format jpeg_format{.name = "jpeg", .render = render_jpegs, .decodes_smaller = true};

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/image/render/impl/jpeg_format.inl>
#endif
