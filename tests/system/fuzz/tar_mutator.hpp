// Mutations of an archive that respect its structure. Most other changes would break the first header's checksum.
//
//   mr::rng d({.seed = seed});
//   slow::tar_mutator(d, LLVMFuzzerMutate).change(tar);              // a std::string
//
// Usually repairs the checksums of headers.
#pragma once

#include "../../unit/io/tar_bytes.hpp"

#include <millrace/base/random.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace slow {

namespace mr = millrace;

class tar_mutator {
 public:
  using any_mutation = std::size_t (*)(std::uint8_t* data, std::size_t size, std::size_t max_size);

  tar_mutator(mr::rng& d, any_mutation any) : d_(d), any_(any) {}

  void change(std::string& tar) {
    for (std::uint64_t times = d_.below(3) + 1; times > 0; --times) change_once(tar);
    if (d_.chance(0.9)) make_checksums_right(tar);
  }

 private:
  static constexpr std::size_t block = 512;

  static void make_checksums_right(std::string& tar) {
    for (std::size_t at = 0; at + block <= tar.size(); at += block)
      if (tar.compare(at + 257, 5, "ustar") == 0) tar_test::put_checksum(tar, at);
  }

  std::string any_name() {
    static const char* const names[] = {"a.cls", "a.jpg", "b.txt", "n/0.tar.gz", ".x", "plain", "__meta__/a.b", "a.JPG",
                                        "d/", "./a.b", "/a.b", "\xff.x", "caf\xc3\xa9.x", "a", "", "._a.x", "a.cls/"};
    const std::string name = names[d_.below(std::size(names))];
    return d_.chance(0.1) ? std::string(d_.between(90, 300), 'd') + "/" + name : name;
  }

  std::string any_record() {
    static const char* const keys[] = {"path", "size", "mtime", "linkpath", "hdrcharset", "GNU.sparse.major",
                                       "GNU.sparse.minor", "GNU.sparse.name", "GNU.sparse.realsize", "GNU.sparse.size",
                                       "GNU.sparse.map", "GNU.sparse.numblocks", "uname", "comment", "SCHILY.xattr.a",
                                       "SCHILY.realsize", "LIBARCHIVE.xattr.b", "uid", "atime", "ctime"};
    static const char* const values[] = {"0", "1", "3", "512", "700", "-1", "99999999999999", "BINARY", "abc", "",
                                         "0,1", "0,3,512,3", "1700000000.5", "ISO-IR 10646 2000 UTF-8", "8589934592"};
    const std::string key = keys[d_.below(std::size(keys))];
    return tar_test::pax_record(key, d_.chance(0.3) ? any_name() : values[d_.below(std::size(values))]);
  }

  std::string any_member() {
    const std::string data(d_.below(4) == 0 ? d_.below(1100) : d_.below(20), 'x');
    switch (d_.below(9)) {
      case 0: return tar_test::pax_file(any_name(), data);
      case 1: return tar_test::gnu_long_name(any_name() + "x", data);
      case 2: {
        std::string records;
        for (std::uint64_t i = d_.below(4); i > 0; --i) records += any_record();
        return tar_test::pax(records, d_.chance(0.2) ? 'g' : 'x') +
               (d_.chance(0.9) ? tar_test::file(any_name(), data) : "");
      }
      case 3: {
        static constexpr char types[] = "1234567VKLASDNMXgx\0";
        return tar_test::block({.name = any_name(), .size_bytes = d_.chance(0.5) ? 0 : data.size(),
                                .type = types[d_.below(sizeof types - 1)], .link = d_.chance(0.5) ? "a.cls" : ""}) +
               (d_.chance(0.5) ? tar_test::padded(data) : "");
      }
      case 4: {
        std::string sparse = tar_test::block({.name = any_name(), .size_bytes = data.size(), .type = 'S',
                                              .magic = std::string("ustar  \0", 8)});
        sparse.replace(386, 11, tar_test::octal(d_.below(2000), 11));
        sparse.replace(398, 11, tar_test::octal(data.size(), 11));
        sparse.replace(483, 11, tar_test::octal(d_.below(4000), 11));
        return sparse + tar_test::padded(data);
      }
      case 5:
        return tar_test::block({.name = any_name(), .size_bytes = data.size(), .prefix = any_name().substr(0, 150)}) +
               tar_test::padded(data);
      default: return tar_test::file(any_name(), data);
    }
  }

  std::size_t any_block(const std::string& tar) { return block * d_.below(tar.size() / block + 1); }

  void change_once(std::string& tar) {
    const std::size_t at = std::min(any_block(tar), tar.size());
    switch (d_.below(12)) {
      case 0: return change_anyhow(tar, 0, tar.size());
      case 1: tar.insert(at, any_member()); return;
      case 2: tar.erase(at, block * (d_.below(3) + 1)); return;
      case 3: tar.insert(at, tar.substr(std::min(any_block(tar), tar.size()), block * (d_.below(3) + 1))); return;
      case 4: tar.resize(d_.chance(0.5) ? at : d_.below(tar.size() + 1)); return;
      case 5: tar.insert(at, std::string(d_.chance(0.7) ? block * (d_.below(3) + 1) : d_.below(600), '\0')); return;
      case 6: return change_records(tar, at);
      default: return change_field(tar, at);
    }
  }

  void change_field(std::string& tar, std::size_t at) {
    struct place {
      std::size_t at, size;
    };
    static constexpr place fields[] = {{0, 100}, {124, 12}, {124, 12}, {156, 1}, {156, 1}, {157, 100}, {257, 8},
                                       {345, 155}, {100, 8}, {108, 8}, {136, 12}, {148, 8}, {329, 8}, {337, 8},
                                       {386, 96}, {482, 13}};
    if (at + block > tar.size()) return;
    const place& f = fields[d_.below(std::size(fields))];
    if (f.at == 124 && d_.chance(0.6)) {
      static constexpr std::uint64_t sizes[] = {0, 1, 3, 511, 512, 513, 700, 1024, 4096, 07777777777};
      tar.replace(at + 124, 11, tar_test::octal(sizes[d_.below(std::size(sizes))], 11));
      if (d_.chance(0.1)) tar.replace(at + 124, 4, std::string("\x80\0\0\0", 4));
    } else if (f.at == 156 && d_.chance(0.8)) {
      static constexpr char types[] = "0123456789VKLASDNMXgx";
      tar[at + 156] = types[d_.below(sizeof types)];
    } else if (f.at == 257 && d_.chance(0.8)) {
      tar.replace(at + 257, 8, d_.chance(0.5) ? std::string("ustar  \0", 8) : std::string("ustar\00000", 8));
    } else if (f.at == 0 && d_.chance(0.5)) {
      const std::string name = any_name().substr(0, 100);
      tar.replace(at, 100, name + std::string(100 - name.size(), '\0'));
    } else {
      change_anyhow(tar, at + f.at, at + f.at + f.size);
      return;
    }
  }

  /// Replaces a record of a payload, and adjusts the member's size.
  void change_records(std::string& tar, std::size_t at) {
    if (at < block || at + block > tar.size()) return;
    std::string records;
    for (std::uint64_t i = d_.below(3) + 1; i > 0; --i) records += any_record();
    records.resize(std::min(records.size(), block));
    tar.replace(at, records.size(), records);
    tar.replace(at - block + 124, 11, tar_test::octal(records.size(), 11));
    if (d_.chance(0.5)) tar[at - block + 156] = d_.chance(0.8) ? 'x' : 'g';
  }

  void change_anyhow(std::string& tar, std::size_t begin, std::size_t end) {
    std::vector<std::uint8_t> part(end - begin + (begin == 0 ? 32 : 0));
    if (begin < end) std::memcpy(part.data(), tar.data() + begin, end - begin);
    const std::size_t size = any_(part.data(), end - begin, part.size());
    if (begin == 0) tar.assign(part.begin(), part.begin() + std::ptrdiff_t(size));   // elsewhere the size stays
    else std::memcpy(tar.data() + begin, part.data(), end - begin);
  }

  mr::rng& d_;
  any_mutation any_;
};

}  // namespace slow
