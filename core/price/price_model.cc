#include "core/price/price_model.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"

namespace loadline {
namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
constexpr double kLocalSsdGib = 375;
constexpr int64_t kDefaultBootDiskGib = 100;
constexpr absl::string_view kDefaultBootDiskType = "pd-balanced";

double Cpus(int64_t milli_cpu) { return static_cast<double>(milli_cpu) / 1000.0; }
double Gib(int64_t bytes) { return static_cast<double>(bytes) / kGiB; }

template <typename Map>
const typename Map::mapped_type* Find(const Map& map, absl::string_view key) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}

// GCE's name of a family: types without one are of the first generation.
absl::string_view GceFamily(absl::string_view instance_type) {
  const absl::string_view first = instance_type.substr(0, instance_type.find('-'));
  return first == "custom" || first == "f1" || first == "g1" ? absl::string_view("n1") : first;
}

bool IsGceCustom(absl::string_view instance_type) {
  const size_t dash = instance_type.find('-');
  if (instance_type.substr(0, dash) == "custom") return true;
  if (dash == absl::string_view::npos) return false;
  const absl::string_view rest = instance_type.substr(dash + 1);
  return rest.substr(0, rest.find('-')) == "custom";
}

const FamilyRates* FindGceFamily(const GcePrices& gce, absl::string_view instance_type) {
  return Find(IsGceCustom(instance_type) ? gce.custom_families : gce.families, GceFamily(instance_type));
}

// The first of the model's own rate, those of the catalogues, and the default.
double BaseRate(const PriceModel& model, std::optional<double> BaseRates::*rate, double otherwise) {
  if ((model.base.*rate).has_value()) return *(model.base.*rate);
  for (const PriceCatalogue& catalogue : model.catalogues) {
    if ((catalogue.base.*rate).has_value()) return *(catalogue.base.*rate);
  }
  return otherwise;
}

// That of its type, else of its family, else of all.
double RiskOf(const PriceModel& model, const PricedNode& node) {
  for (const absl::string_view instance :
       {absl::string_view(node.instance_type), FamilyOf(node.instance_type)}) {
    for (const InterruptionRisk& entry : model.interruption_risks) {
      if (entry.instance == instance) return entry.risk;
    }
  }
  return model.interruption_risk;
}

class Pricing {
 public:
  Pricing(const PriceModel& model, const PricedNode& node) : model_(model), node_(node) {
    price_.spot = node.spot;
  }

  NodePrice Run() {
    Ask();
    if (price_.source == PriceSource::kNone) return Finish();
    if (node_.spot) {
      Add(PricePartKind::kInterruptions, price_.price / (1 - RiskOf(model_, node_)) - price_.price);
    }
    Add(PricePartKind::kSurcharge, model_.surcharge);
    return Finish();
  }

 private:
  void Remark(PriceRemark remark) { price_.remarks.push_back(remark); }
  void Add(PricePartKind kind, double price) {
    if (price == 0) return;
    price_.parts.push_back({kind, price});
    price_.price += price;
  }
  NodePrice Finish() {
    std::sort(price_.remarks.begin(), price_.remarks.end());
    return std::move(price_);
  }

  // Whether the model admits the source; if not, says so.
  bool Admits(PriceSource source) {
    if (source <= model_.last_source) return true;
    Remark(PriceRemark::kSourcesExhausted);
    return false;
  }

  void Ask() {
    if (AskGiven() || !Admits(PriceSource::kNodeAnnotation)) return;
    if (AskAnnotation()) return;
    if (!node_.has_template && node_.instance_type.empty()) return Remark(PriceRemark::kNoTemplate);
    if (!Admits(PriceSource::kInstanceType) || AskInstanceType()) return;
    if (!Admits(PriceSource::kFamily)) return;
    // The rest goes by capacity.
    if (!node_.has_template) return Remark(PriceRemark::kNoTemplate);
    if (AskFamily() || !Admits(PriceSource::kBaseRates)) return;
    AskBaseRates();
  }

  bool Take(PriceSource source, double price) {
    price_.source = source;
    Add(PricePartKind::kMachine, price);
    return true;
  }

  bool AskGiven() {
    if (!node_.given.has_value()) return false;
    if (IsPrice(*node_.given)) return Take(PriceSource::kGiven, *node_.given);
    Remark(PriceRemark::kGivenPriceInvalid);
    return false;
  }

  bool AskAnnotation() {
    const bool valid = node_.annotated.has_value() && IsPrice(*node_.annotated);
    if (valid) return Take(PriceSource::kNodeAnnotation, *node_.annotated);
    if (node_.annotation_invalid || node_.annotated.has_value()) Remark(PriceRemark::kAnnotationInvalid);
    return false;
  }

  bool AskInstanceType() {
    if (node_.instance_type.empty()) {
      Remark(PriceRemark::kNoInstanceType);
      return false;
    }
    for (const PriceCatalogue& catalogue : model_.catalogues) {
      const InstancePrice* const found = Find(catalogue.types, node_.instance_type);
      if (found == nullptr) continue;
      const std::optional<double> price = MachinePrice(*found, catalogue.gce.has_value());
      if (!price.has_value()) continue;
      Name(catalogue, node_.instance_type);
      Take(PriceSource::kInstanceType, *price);
      if (catalogue.gce.has_value()) AddGceParts(*catalogue.gce);
      return true;
    }
    Remark(PriceRemark::kInstanceTypeNotListed);
    return false;
  }

  // A GCE list that has no spot price has a factor for the family.
  std::optional<double> MachinePrice(const InstancePrice& listed, bool gce) {
    if (!node_.spot) return listed.on_demand;
    if (listed.spot.has_value() || gce || !listed.on_demand.has_value()) return listed.spot;
    return *listed.on_demand * ModelSpotFactor();
  }

  double ModelSpotFactor() {
    Remark(PriceRemark::kSpotFactorOfModel);
    return model_.spot_factor.value_or(1);
  }

  void Name(const PriceCatalogue& catalogue, absl::string_view key) {
    price_.catalogue = catalogue.name;
    price_.key = std::string(key);
  }

  bool AskFamily() {
    if (node_.instance_type.empty()) return false;
    for (const PriceCatalogue& catalogue : model_.catalogues) {
      const bool found = catalogue.gce.has_value() ? AskGceFamily(catalogue) : AskTableFamily(catalogue);
      if (found) return true;
    }
    Remark(PriceRemark::kFamilyNotListed);
    return false;
  }

  bool AskGceFamily(const PriceCatalogue& catalogue) {
    const FamilyRates* const rates = FindGceFamily(*catalogue.gce, node_.instance_type);
    if (rates == nullptr || (!rates->cpu.has_value() && !rates->memory_gib.has_value())) return false;
    Name(catalogue, GceFamily(node_.instance_type));
    Take(PriceSource::kFamily, ByResources(*rates) * SpotFactor(rates->spot_factor));
    AddGceParts(*catalogue.gce);
    return true;
  }

  bool AskTableFamily(const PriceCatalogue& catalogue) {
    const std::vector<FamilyMember>* const members =
        Find(catalogue.families, FamilyKeyOf(node_.instance_type));
    const double cpus = Cpus(node_.milli_cpu);
    if (members == nullptr || cpus <= 0) return false;
    const FamilyMember* nearest = nullptr;
    double distance = 0;
    for (const FamilyMember& member : *members) {
      if (!node_.spot && !member.price.on_demand.has_value()) continue;
      const double ratio = std::max(member.cpus / cpus, cpus / member.cpus);
      if (nearest != nullptr && ratio >= distance) continue;
      nearest = &member;
      distance = ratio;
    }
    if (nearest == nullptr) return false;
    const std::optional<double> price = MachinePrice(nearest->price, /*gce=*/false);
    Name(catalogue, nearest->type);
    return Take(PriceSource::kFamily, *price * (cpus / nearest->cpus));
  }

  void AskBaseRates() {
    Take(PriceSource::kBaseRates, ByResources(FamilyRates{}) * SpotFactor(std::nullopt));
    for (const PriceCatalogue& catalogue : model_.catalogues) {
      if (catalogue.gce.has_value()) return AddGceParts(*catalogue.gce);
    }
    Add(PricePartKind::kGpu,
        static_cast<double>(node_.gpus) * BaseRate(model_, &BaseRates::gpu, kDefault.gpu));
  }

  // In the order in which GCE's model adds them.
  double ByResources(const FamilyRates& rates) const {
    double price =
        Cpus(node_.milli_cpu) * rates.cpu.value_or(BaseRate(model_, &BaseRates::cpu, kDefault.cpu));
    price += Gib(node_.memory_bytes) *
             rates.memory_gib.value_or(BaseRate(model_, &BaseRates::memory_gib, kDefault.memory_gib));
    price += Gib(node_.ephemeral_bytes) * BaseRate(model_, &BaseRates::ephemeral_gib, kDefault.ephemeral_gib);
    return price;
  }

  double SpotFactor(std::optional<double> family) {
    if (!node_.spot) return 1;
    constexpr double kUnknown = -1;
    const double factor = family.value_or(BaseRate(model_, &BaseRates::spot_factor, kUnknown));
    if (factor == kUnknown) return ModelSpotFactor();
    Remark(PriceRemark::kSpotFactorOfCatalogue);
    return factor;
  }

  void AddGceParts(const GcePrices& gce) {
    Add(PricePartKind::kLocalSsd,
        node_.local_ssds * kLocalSsdGib * (node_.spot ? gce.spot_local_ssd_gib : gce.local_ssd_gib));
    const double* const disk =
        Find(gce.boot_disk_gib, node_.boot_disk_type.empty() ? kDefaultBootDiskType : node_.boot_disk_type);
    if (disk == nullptr) Remark(PriceRemark::kBootDiskTypeNotListed);
    const int64_t gib = node_.boot_disk_gib == 0 ? kDefaultBootDiskGib : node_.boot_disk_gib;
    Add(PricePartKind::kBootDisk, (disk == nullptr ? 0 : *disk) * static_cast<double>(gib));
    if (node_.nvidia_gpus == 0) return;
    const double* const gpu =
        node_.gpu_type.has_value() ? Find(node_.spot ? gce.spot_gpus : gce.gpus, *node_.gpu_type) : nullptr;
    if (gpu == nullptr) Remark(PriceRemark::kGpuTypeNotListed);
    Add(PricePartKind::kGpu, static_cast<double>(node_.nvidia_gpus) *
                                 (gpu == nullptr ? BaseRate(model_, &BaseRates::gpu, kDefault.gpu) : *gpu));
  }

  static constexpr ResourceRates kDefault = {};

  const PriceModel& model_;
  const PricedNode& node_;
  NodePrice price_;
};

bool Covers(const Commitment& commitment, const PricedNode& node) {
  return commitment.instance.empty() || commitment.instance == node.instance_type ||
         commitment.instance == FamilyOf(node.instance_type);
}

}  // namespace

double PodPrice(const ResourceRates& rates, const PodRequests& pod) {
  double price = Cpus(pod.milli_cpu) * rates.cpu;
  price += Gib(pod.memory_bytes) * rates.memory_gib;
  price += Gib(pod.ephemeral_bytes) * rates.ephemeral_gib;
  if (pod.ephemeral_bytes > 0) price += rates.ephemeral_flat;
  price += static_cast<double>(rates.any_gpu ? pod.gpus : pod.nvidia_gpus) * rates.gpu;
  return price;
}

NodePrice PriceNode(const PriceModel& model, const PricedNode& node) { return Pricing(model, node).Run(); }

double CommittedPrice(const PriceModel& model, const PricedNode& node, const NodePrice& price,
                      int64_t nodes) {
  if (node.spot || price.parts.empty() || price.parts[0].kind != PricePartKind::kMachine) return 0;
  const double all = static_cast<double>(nodes) * Cpus(node.milli_cpu);
  double left = all;
  for (const Commitment& commitment : model.commitments) {
    if (Covers(commitment, node)) left -= std::min(left, Cpus(commitment.unused_milli_cpu));
  }
  if (left == all) return 0;  // also without CPUs
  return static_cast<double>(nodes) * price.parts[0].price * ((all - left) / all);
}

}  // namespace loadline
