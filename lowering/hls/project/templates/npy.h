// NumPy's files of arrays (format 1.0, C order), and the comparison of results with what is expected.
#pragma once
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace npy {

// The elements of a file, as bytes; the program ends where it has another size.
inline std::vector<char> bytes(const std::string &path, size_t size) {
  FILE *file = fopen(path.c_str(), "rb");
  if (!file) {
    fprintf(stderr, "%s cannot be read\n", path.c_str());
    exit(2);
  }
  unsigned char head[10];
  std::vector<char> found(size);
  bool right = fread(head, 1, 10, file) == 10 && head[0] == 0x93 && head[6] == 1 &&
               !fseek(file, head[8] | head[9] << 8, SEEK_CUR) && fread(found.data(), 1, size, file) == size &&
               fgetc(file) == EOF;
  fclose(file);
  if (!right) {
    fprintf(stderr, "%s is no array of %zu bytes\n", path.c_str(), size);
    exit(2);
  }
  return found;
}

template <typename T>
std::vector<T> load(const std::string &path, size_t count) {
  std::vector<char> raw = bytes(path, count * sizeof(T));
  const T *first = reinterpret_cast<const T *>(raw.data());
  std::vector<T> found(first, first + count);
  found.resize(count ? count : 1);  // a buffer of nothing has an element
  return found;
}

// Whether results are those of a file, up to a part of the largest of them; prints what it finds.  Without tolerance
// they are equal.
template <typename T>
bool agree(const char *name, const T *got, const std::string &path, size_t count, double tolerance) {
  std::vector<T> want = load<T>(path, count);
  double scale = 0, worst = 0;
  size_t other = 0;  // that are no numbers on one side, or not equal and have to be
  for (size_t i = 0; i < count; i++)
    if (std::isfinite((double)want[i])) scale = std::fmax(scale, std::fabs((double)want[i]));
  for (size_t i = 0; i < count; i++) {
    double a = got[i], b = want[i];
    if (got[i] == want[i] || (std::isnan(a) && std::isnan(b))) continue;
    if (tolerance && std::isfinite(a) && std::isfinite(b))
      worst = std::fmax(worst, std::fabs(a - b) / (scale ? scale : 1));
    else
      other++;
  }
  bool right = !other && worst <= tolerance;
  printf("%-16s %10zu elements, largest difference %.2g of the largest value: %s\n", name, count, worst,
         right ? "right" : "WRONG");
  return right;
}

}  // namespace npy
