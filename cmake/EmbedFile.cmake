# cmake -D FROM=FILE -D TO=FILE.cc -D HEADER=PATH -D FUNCTION=NAME -P EmbedFile.cmake: writes a C++ source with a
# function of namespace loadline, declared in HEADER, that returns the bytes of FROM.
file(READ ${FROM} bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${TO} "#include \"${HEADER}\"

absl::string_view loadline::${FUNCTION}() {
  static constexpr unsigned char kBytes[] = {${bytes}};
  return absl::string_view(reinterpret_cast<const char*>(kBytes), sizeof(kBytes));
}
")
