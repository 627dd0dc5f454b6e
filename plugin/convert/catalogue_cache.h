// Price lists that were read lately: clients send the same ones with each question.
#ifndef LOADLINE_PLUGIN_CONVERT_CATALOGUE_CACHE_H_
#define LOADLINE_PLUGIN_CONVERT_CATALOGUE_CACHE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/price/price_catalogue.h"

namespace loadline {

// Returns what ParsePriceCatalogue() does, which it calls where none of the lists that came last, of 2 MiB in
// all, has the same name and content. Cost: O(bytes), by a comparison where the list is known. Any thread.
absl::StatusOr<std::shared_ptr<const PriceCatalogue>> CachedPriceCatalogue(absl::string_view name,
                                                                           absl::string_view csv);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_CATALOGUE_CACHE_H_
