#include "core/price/rank_tanh.h"

#include <cmath>
#include <initializer_list>

namespace loadline {
namespace {

// e^x of x in [1.25, 89): no special value, overflow or denormal can occur. Order of operations and the
// places of the fused ones are those of the source.
double GoExp(double x) {
  // Published: the constants of Go's math.Exp; ln 2 has two parts, so that products with it are exact.
  constexpr double kLog2E = 1.4426950408889634073599246810018920;
  constexpr double kLn2Upper = 0.69314718055966295651160180568695068359375;
  constexpr double kLn2Lower = 0.28235290563031577122588448175013436025525412068e-12;
  // Rounds halves to even, as the processor does where Go's assembly asks it to.
  const double exponent = std::nearbyint(x * kLog2E);
  x = std::fma(-exponent, kLn2Upper, x);
  x = std::fma(-exponent, kLn2Lower, x);
  x *= 0.0625;
  // Taylor series of e^x - 1, over x.
  double y = 2.4801587301587301587e-5;
  for (const double term : {1.9841269841269841270e-4, 1.3888888888888888889e-3, 8.3333333333333333333e-3,
                            4.1666666666666666667e-2, 1.6666666666666666667e-1, 0.5, 1.0}) {
    y = std::fma(y, x, term);
  }
  x *= y;
  // From e^x - 1 to e^16x - 1: (1 + z)^2 - 1 = z * (z + 2), four times.
  for (int i = 0; i < 3; ++i) x *= x + 2.0;
  x = std::fma(x, x + 2.0, 1.0);
  return std::ldexp(x, static_cast<int>(exponent));
}

}  // namespace

double GoTanh(double x) {
  constexpr double kMaxLog = 8.8029691931113054295988e+01;  // log(2^127)
  const double z = std::fabs(x);
  if (z > 0.5 * kMaxLog) return x < 0 ? -1 : 1;
  if (z >= 0.625) {
    const double y = 1 - 2 / (GoExp(2 * z) + 1);
    return x < 0 ? -y : y;
  }
  if (x == 0 || std::isnan(x)) return x;
  const double s = x * x;
  return x +
         x * s *
             ((-9.64399179425052238628e-1 * s + -9.92877231001918586564e1) * s + -1.61468768441708447952e3) /
             (((s + 1.12811678491632931402e2) * s + 2.23548839060100448583e3) * s + 4.84406305325125486048e3);
}

}  // namespace loadline
