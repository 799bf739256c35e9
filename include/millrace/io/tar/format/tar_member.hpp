// The header of one member of a tar archive.
//
//   while (auto member = tar.next())
//     if (member->regular) { buffer.resize(member->size_bytes); tar.read(buffer); }
//
// Units: offsets are in bytes of the uncompressed archive. Lifetime: the name is valid until the next member.
#pragma once

#include <millrace/base/version.hpp>

#include <cstdint>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The header of a member.
struct tar_member {
  std::string_view name{};          ///< valid until the next member
  std::uint64_t size_bytes = 0;     ///< size of the payload, including holes
  std::uint64_t offset_bytes = 0;   ///< offset of the member's first header block in the uncompressed archive
  /// Offset of the payload in the uncompressed archive; meaningless if sparse.
  std::uint64_t payload_offset_bytes = 0;
  bool regular = false;   ///< true for a file; false for a link, a folder or a device
  bool sparse = false;    ///< true if the headers declare holes, which the archive does not store
};

}}}   // namespace millrace::detail
