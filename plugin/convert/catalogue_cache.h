// Price lists that were read lately: clients send the same ones with each question.
#ifndef LOADLINE_PLUGIN_CONVERT_CATALOGUE_CACHE_H_
#define LOADLINE_PLUGIN_CONVERT_CATALOGUE_CACHE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/price/price_catalogue.h"

namespace loadline {

// Returns what ParsePriceCatalogue() does. The lists that were asked for last are kept, with about 16 MiB of
// memory in all, and not read again as long as name and content are the same. Cost: O(bytes), by a comparison
// where the list is known. Any thread.
absl::StatusOr<std::shared_ptr<const PriceCatalogue>> CachedPriceCatalogue(absl::string_view name,
                                                                           absl::string_view csv);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_CATALOGUE_CACHE_H_
