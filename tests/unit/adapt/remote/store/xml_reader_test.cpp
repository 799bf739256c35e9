#include <millrace/adapt/remote/store/xml_reader.hpp>

#include <doctest/doctest.h>

#include <string>
#include <string_view>

namespace mr = millrace;

namespace {

std::string elements(std::string_view xml) {
  std::string all;
  mr::detail::xml_reader(xml).for_each([&](std::string_view path, const std::string& content) {
    all.append(path).append("=").append(content).append(";");
  });
  return all;
}

std::string refusal(std::string_view xml) {
  try {
    return "accepted:  " + elements(xml);
  } catch (const mr::data_error& e) {
    return e.message();
  }
}

}  // namespace

TEST_CASE("elements are passed with their path and their text") {
  CHECK(elements("<?xml version=\"1.0\"?>\n<a x='1' y = \"2>\"><b>1</b><c/><b>2<d>3</d>4</b></a>\n") ==
        "a/b=1;a/c=;a/b/d=3;a/b=24;a=;");
  CHECK(elements("\xef\xbb\xbf<s:a xmlns:s=\"http://x\"><s:b>1</s:b></s:a>") == "a/b=1;a=;");
  CHECK(elements("<a><!-- <b> --><![CDATA[<&]]>]</a><!-- end -->") == "a=<&];");
  CHECK(elements("<a>&lt;&gt;&amp;&quot;&apos;&#65;&#x42;&#xe9;&#x20AC;&#x1F600;&#10;</a>") ==
        "a=<>&\"'AB\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\n;");
  CHECK(elements("<a >1</a >") == "a=1;");
}

TEST_CASE("text that is not well-formed is refused with the offset") {
  for (const char* wrong :
       {"", " ", "text", "<a>", "<a", "<", "</a>", "<a></b>", "<a><b></a></b>", "<a/><b/>", "<a/>text", "text<a/>",
        "<a>&b;</a>", "<a>&</a>", "<a>& b</a>", "<a>&#;</a>", "<a>&#x;</a>", "<a>&#xg;</a>", "<a>&#0;</a>",
        "<a>&#xd800;</a>", "<a>&#x110000;</a>", "<a>&#999999999;</a>", "<a x></a>", "<a x=1></a>", "<a x='1></a>",
        "<a x='1'y='2'></a>", "<a x='<'/>", "< a/>", "<a><!-- </a>", "<a><![CDATA[</a>", "<?xml", "<![CDATA[x]]><a/>",
        "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", "<a / >", "<a></a", "<a></a x>", "\xef\xbb\xbf"}) {
    CAPTURE(wrong);
    const std::string message = refusal(wrong);
    CHECK(message.starts_with("the XML "));
    CHECK(message.find(", at byte ") != std::string::npos);
  }
}

TEST_CASE("depth has a limit") {
  std::string deep, end;
  for (int i = 0; i < 16; ++i) {
    deep += "<a>";
    end += "</a>";
  }
  CHECK(elements(deep + end).ends_with("a=;"));
  CHECK(refusal(deep + "<a></a>" + end).find("nested deeper than 16 levels") != std::string::npos);
}
