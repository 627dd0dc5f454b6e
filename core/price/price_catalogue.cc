#include "core/price/price_catalogue.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace loadline {
namespace {

using Fields = std::vector<std::string>;

// In quotes, short and printable: catalogues come from outside.
std::string Shown(absl::string_view text) {
  return absl::StrCat("\"", absl::CHexEscape(text.substr(0, 64)), "\"");
}

absl::Status Refused(absl::string_view text) { return absl::InvalidArgumentError(text); }

// Splits one line of comma-separated values; a field may be in quotes, in which a doubled quote means one.
absl::StatusOr<Fields> SplitLine(absl::string_view line) {
  Fields fields(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted && c == '"' && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back().push_back(line[++i]);
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back().push_back(c);
    }
  }
  if (quoted) return Refused("a quote is not closed");
  for (std::string& field : fields) absl::StripAsciiWhitespace(&field);
  return fields;
}

absl::StatusOr<double> ParsePrice(absl::string_view text) {
  double value = 0;
  if (!absl::SimpleAtod(text, &value)) return Refused(absl::StrCat(Shown(text), " is not a price"));
  if (!IsPrice(value)) {
    return Refused(absl::StrCat(Shown(text), " is not a price: must be a number in [0, ", kMaxPrice, "]"));
  }
  return value;
}

// Answers have these names once per price: what is not printable ASCII or very long would make answers that
// nobody can read. Values of labels have at most 63 characters.
absl::Status CheckKey(absl::string_view key) {
  constexpr size_t kMostCharacters = 253;
  if (key.size() > kMostCharacters) {
    return Refused(absl::StrCat(Shown(key), "... is not a name: has ", key.size(), " characters, at most ",
                                kMostCharacters, " are allowed"));
  }
  if (std::all_of(key.begin(), key.end(),
                  [](char c) { return absl::ascii_isprint(static_cast<unsigned char>(c)); }))
    return absl::OkStatus();
  return Refused(absl::StrCat(Shown(key), " is not a name: must be printable ASCII"));
}

// Sets a value once.
absl::Status SetOnce(double value, absl::string_view key, std::optional<double>* out) {
  if (out->has_value()) return Refused(absl::StrCat(Shown(key), " is listed before"));
  *out = value;
  return absl::OkStatus();
}

absl::Status SetOnce(double value, absl::string_view key, absl::flat_hash_map<std::string, double>* out) {
  if (!out->emplace(key, value).second) return Refused(absl::StrCat(Shown(key), " is listed before"));
  return absl::OkStatus();
}

// Reads lines of one form.
class LineReader {
 public:
  virtual ~LineReader() = default;
  virtual absl::Status Read(const Fields& fields) = 0;
};

// A table with a row per instance type.
class TableReader : public LineReader {
 public:
  explicit TableReader(PriceCatalogue* catalogue) : catalogue_(catalogue) {}

  absl::Status ReadHeader(const Fields& header) {
    columns_ = header.size();
    if (absl::Status status = ReadRegions(header); !status.ok()) return status;
    const std::pair<absl::string_view, size_t*> known[] = {{"instance_type", &type_},
                                                           {"on_demand_usd_per_hour", &on_demand_},
                                                           {"spot_usd_per_hour", &spot_},
                                                           {"capacity_vcpu", &cpus_}};
    for (const auto& [name, column] : known) {
      const auto found = std::find(header.begin(), header.end(), name);
      if (found == header.end()) continue;
      *column = static_cast<size_t>(found - header.begin());
      if (std::find(found + 1, header.end(), name) != header.end()) {
        return Refused(absl::StrCat("the header has ", Shown(name), " twice"));
      }
    }
    if (type_ != kNone && on_demand_ != kNone) return absl::OkStatus();
    return Refused(
        "the header has neither instance_type and on_demand_usd_per_hour nor "
        "kind,key,usd_per_hour_or_factor");
  }

  absl::Status Read(const Fields& fields) override {
    if (fields.size() != columns_) {
      return Refused(absl::StrCat("has ", fields.size(), " fields, the header has ", columns_));
    }
    const std::string& type = fields[type_];
    if (type.empty()) return Refused("instance_type is empty");
    if (absl::Status status = CheckKey(type); !status.ok()) return status;
    InstancePrice price;
    if (absl::Status status = ReadOptional(fields, on_demand_, &price.on_demand); !status.ok()) return status;
    if (absl::Status status = ReadOptional(fields, spot_, &price.spot); !status.ok()) return status;
    if (absl::Status status = ReadElsewhere(fields, &price.elsewhere); !status.ok()) return status;
    if (!price.on_demand.has_value() && !price.spot.has_value() && price.elsewhere.empty()) {
      return Refused(absl::StrCat(Shown(type), " has no price"));
    }
    if (!catalogue_->types.emplace(absl::AsciiStrToLower(type), price).second) {
      return Refused(absl::StrCat(Shown(type), " is listed before"));
    }
    std::optional<double> cpus;
    if (absl::Status status = ReadOptional(fields, cpus_, &cpus); !status.ok()) return status;
    const bool priced = price.on_demand.has_value() || price.spot.has_value();
    if (priced && cpus.value_or(0) > 0)
      catalogue_->families[absl::AsciiStrToLower(FamilyKeyOf(type))].push_back({*cpus, price, type});
    return absl::OkStatus();
  }

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);

  // Takes note of the columns `on_demand_usd_per_hour@REGION` and `spot_usd_per_hour@REGION`.
  absl::Status ReadRegions(const Fields& header) {
    for (size_t column = 0; column < header.size(); ++column) {
      const size_t at = header[column].find('@');
      if (at == std::string::npos) continue;
      const std::string what = header[column].substr(0, at);
      const std::string region = header[column].substr(at + 1);
      const bool spot = what == "spot_usd_per_hour";
      if (!spot && what != "on_demand_usd_per_hour") continue;
      absl::Status status = region.empty() ? Refused("a column names no region") : CheckKey(region);
      if (!status.ok()) return status;
      const auto [known, is_new] = catalogue_->region_positions.emplace(region, catalogue_->regions.size());
      if (is_new) {
        catalogue_->regions.push_back(region);
        regional_.emplace_back();
      }
      size_t& to = spot ? regional_[known->second].spot : regional_[known->second].on_demand;
      if (to != kNone) return Refused(absl::StrCat("the header has ", Shown(header[column]), " twice"));
      to = column;
    }
    return absl::OkStatus();
  }

  // Leaves `prices` empty where the row has none.
  absl::Status ReadElsewhere(const Fields& fields, std::vector<MachinePrice>* prices) const {
    for (size_t i = 0; i < regional_.size(); ++i) {
      MachinePrice price;
      absl::Status status = ReadOptional(fields, regional_[i].on_demand, &price.on_demand);
      if (status.ok()) status = ReadOptional(fields, regional_[i].spot, &price.spot);
      if (!status.ok()) return status;
      if (!price.on_demand.has_value() && !price.spot.has_value()) continue;
      prices->resize(regional_.size());
      (*prices)[i] = price;
    }
    return absl::OkStatus();
  }

  static absl::Status ReadOptional(const Fields& fields, size_t column, std::optional<double>* out) {
    if (column == kNone || fields[column].empty()) return absl::OkStatus();
    const absl::StatusOr<double> value = ParsePrice(fields[column]);
    if (!value.ok()) return value.status();
    *out = *value;
    return absl::OkStatus();
  }

  PriceCatalogue* catalogue_;
  size_t columns_ = 0;
  size_t type_ = kNone;
  size_t on_demand_ = kNone;
  size_t spot_ = kNone;
  size_t cpus_ = kNone;
  struct RegionColumns {
    size_t on_demand = kNone;
    size_t spot = kNone;
  };
  std::vector<RegionColumns> regional_;
};

// kind,key,value: list prices of GCE.
class GceReader : public LineReader {
 public:
  explicit GceReader(PriceCatalogue* catalogue) : catalogue_(catalogue), gce_(&catalogue->gce.emplace()) {}

  static bool IsHeader(const Fields& header) {
    return header == Fields{"kind", "key", "usd_per_hour_or_factor"};
  }

  absl::Status Read(const Fields& fields) override {
    if (fields.size() != 3) return Refused(absl::StrCat("has ", fields.size(), " fields, the header has 3"));
    const absl::StatusOr<double> value = ParsePrice(fields[2]);
    if (!value.ok()) return value.status();
    const std::string& kind = fields[0];
    const std::string& key = fields[1];
    if (absl::Status status = CheckKey(key); !status.ok()) return status;
    if (absl::EndsWith(kind, "_factor") && *value > 1) {
      return Refused(absl::StrCat(Shown(fields[2]), " is not a factor: must be in [0, 1]"));
    }
    if (kind == "constant") return ReadConstant(key, *value);
    if (kind == "machine_hour")
      return SetOnce(*value, key, &catalogue_->types[absl::AsciiStrToLower(key)].on_demand);
    if (kind == "preemptible_machine_hour")
      return SetOnce(*value, key, &catalogue_->types[absl::AsciiStrToLower(key)].spot);
    if (kind == "gpu_hour") return SetOnce(*value, key, &gce_->gpus);
    if (kind == "preemptible_gpu_hour") return SetOnce(*value, key, &gce_->spot_gpus);
    if (kind == "boot_disk_per_gib_hour") return SetOnce(*value, key, &gce_->boot_disk_gib);
    return ReadFamily(kind, key, *value);
  }

 private:
  absl::Status ReadConstant(absl::string_view key, double value) {
    if (key == "base_cpu_per_vcpu_hour") return SetOnce(value, key, &catalogue_->base.cpu);
    if (key == "base_memory_per_gib_hour") return SetOnce(value, key, &catalogue_->base.memory_gib);
    if (key == "base_gpu_hour") return SetOnce(value, key, &catalogue_->base.gpu);
    if (key == "base_preemptible_factor") {
      if (value > 1) return Refused(absl::StrCat(value, " is not a factor: must be in [0, 1]"));
      return SetOnce(value, key, &catalogue_->base.spot_factor);
    }
    if (key == "local_ssd_per_gib_hour") {
      gce_->local_ssd_gib = value;
      return absl::OkStatus();
    }
    if (key == "spot_local_ssd_per_gib_hour") {
      gce_->spot_local_ssd_gib = value;
      return absl::OkStatus();
    }
    return Refused(absl::StrCat("there is no constant ", Shown(key)));
  }

  absl::Status ReadFamily(absl::string_view kind, absl::string_view key, double value) {
    const bool custom = absl::ConsumePrefix(&kind, "custom_");
    if (!custom && !absl::ConsumePrefix(&kind, "predefined_")) {
      return Refused(absl::StrCat("there is no kind ", Shown(kind)));
    }
    FamilyRates& rates = (custom ? gce_->custom_families : gce_->families)[key];
    if (kind == "cpu_per_vcpu_hour") return SetOnce(value, key, &rates.cpu);
    if (kind == "memory_per_gib_hour") return SetOnce(value, key, &rates.memory_gib);
    if (kind == "preemptible_factor") return SetOnce(value, key, &rates.spot_factor);
    return Refused(absl::StrCat("there is no kind ", Shown(kind)));
  }

  PriceCatalogue* catalogue_;
  GcePrices* gce_;
};

absl::Status AtLine(int64_t line, const absl::Status& status) {
  return Refused(absl::StrCat("line ", line, ": ", status.message()));
}

// Takes the next line off `text`, without its end.
absl::string_view TakeLine(absl::string_view* text) {
  const size_t end = std::min(text->find('\n'), text->size());
  absl::string_view line = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  absl::ConsumeSuffix(&line, "\r");
  return line;
}

// Reads a comment that says what the list is of; any other one says nothing.
absl::Status ReadAbout(absl::string_view comment, PriceCatalogue* catalogue) {
  absl::ConsumePrefix(&comment, "#");
  const size_t colon = comment.find(':');
  if (colon == absl::string_view::npos) return absl::OkStatus();
  const absl::string_view key = absl::StripAsciiWhitespace(comment.substr(0, colon));
  const absl::string_view value = absl::StripAsciiWhitespace(comment.substr(colon + 1));
  const std::pair<absl::string_view, std::string*> known[] = {{"region", &catalogue->region},
                                                              {"date", &catalogue->date},
                                                              {"os", &catalogue->os},
                                                              {"provider", &catalogue->provider}};
  for (const auto& [name, to] : known) {
    if (key != name) continue;
    if (absl::Status status = CheckKey(value); !status.ok()) return status;
    *to = std::string(value);
  }
  return absl::OkStatus();
}

bool IsGceCustom(absl::string_view instance_type) {
  const size_t dash = instance_type.find('-');
  if (instance_type.substr(0, dash) == "custom") return true;
  if (dash == absl::string_view::npos) return false;
  const absl::string_view rest = instance_type.substr(dash + 1);
  return rest.substr(0, rest.find('-')) == "custom";
}

void Complete(PriceCatalogue* catalogue) {
  for (auto& [family, members] : catalogue->families) {
    std::sort(members.begin(), members.end(), [](const FamilyMember& a, const FamilyMember& b) {
      return a.cpus != b.cpus ? a.cpus < b.cpus : a.type < b.type;
    });
  }
  if (!catalogue->gce.has_value()) return;
  // GCE counts ephemeral storage as disk of the type that is the default.
  const auto disk = catalogue->gce->boot_disk_gib.find("pd-balanced");
  if (disk != catalogue->gce->boot_disk_gib.end()) catalogue->base.ephemeral_gib = disk->second;
}

}  // namespace

bool IsPrice(double value) { return value >= 0 && value <= kMaxPrice; }

absl::string_view FamilyOf(absl::string_view instance_type) {
  const size_t dot = instance_type.find('.');
  return instance_type.substr(0, dot != absl::string_view::npos ? dot : instance_type.find('-'));
}

absl::string_view GceFamily(absl::string_view instance_type) {
  const absl::string_view first = instance_type.substr(0, instance_type.find('-'));
  return first == "custom" || first == "f1" || first == "g1" ? absl::string_view("n1") : first;
}

const FamilyRates* FindGceFamily(const GcePrices& gce, absl::string_view instance_type) {
  const auto& families = IsGceCustom(instance_type) ? gce.custom_families : gce.families;
  const auto found = families.find(GceFamily(instance_type));
  return found == families.end() ? nullptr : &found->second;
}

absl::string_view FamilyKeyOf(absl::string_view instance_type) {
  return instance_type.substr(0, FamilyOf(instance_type).size() + 1);
}

absl::StatusOr<PriceCatalogue> ParsePriceCatalogue(absl::string_view name, absl::string_view csv) {
  PriceCatalogue catalogue;
  catalogue.name = std::string(name);
  absl::ConsumePrefix(&csv, "\xEF\xBB\xBF");  // a byte order mark, as spreadsheets write it
  std::unique_ptr<LineReader> reader;
  for (int64_t line = 1; !csv.empty(); ++line) {
    const absl::string_view text = TakeLine(&csv);
    if (absl::StripAsciiWhitespace(text).empty()) continue;
    absl::Status status;
    if (text[0] == '#') {
      if (reader == nullptr) status = ReadAbout(text, &catalogue);
      if (!status.ok()) return AtLine(line, status);
      continue;
    }
    const absl::StatusOr<Fields> fields = SplitLine(text);
    if (!fields.ok()) return AtLine(line, fields.status());
    if (reader != nullptr) {
      status = reader->Read(*fields);
    } else if (GceReader::IsHeader(*fields)) {
      reader = std::make_unique<GceReader>(&catalogue);
    } else {
      auto table = std::make_unique<TableReader>(&catalogue);
      status = table->ReadHeader(*fields);
      reader = std::move(table);
    }
    if (!status.ok()) return AtLine(line, status);
  }
  if (reader == nullptr) return Refused("is empty: it has no header");
  constexpr absl::string_view kKnownClouds[] = {"aws", "azure", "gce"};
  absl::AsciiStrToLower(&catalogue.provider);
  if (!absl::c_linear_search(kKnownClouds, catalogue.provider)) catalogue.provider.clear();
  Complete(&catalogue);
  return catalogue;
}

}  // namespace loadline
