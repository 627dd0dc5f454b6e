#include "core/price/price_model.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "core/cluster/platform_labels.h"

namespace loadline {
namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
constexpr double kLocalSsdGib = 375;
constexpr int64_t kDefaultBootDiskGib = 100;
constexpr absl::string_view kDefaultBootDiskType = "pd-balanced";
constexpr absl::string_view kGce = "gce";
// A provider's price below this share of the price that base rates give for the hardware is ignored. Chosen:
// no list price is that low, so it is a mistake, or the price of a part of the node.
constexpr double kLeastShareOfHardware = 1.0 / 3;
// GCE's base factor: spot nodes are judged by the deepest discount that holds for whole families.
constexpr double kDeepSpotShare = 0.21;

double Gib(int64_t bytes) { return static_cast<double>(bytes) / kGiB; }

template <typename Map>
const typename Map::mapped_type* Find(const Map& map, absl::string_view key) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}

// The first of the model's own rate, those of the catalogues, and the default.
double BaseRate(const PriceModel& model, std::optional<double> BaseRates::*rate, double otherwise) {
  if ((model.base.*rate).has_value()) return *(model.base.*rate);
  for (const auto& catalogue : model.catalogues) {
    if ((catalogue->base.*rate).has_value()) return *(catalogue->base.*rate);
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
    if (price_.basis == PriceBasis::kEstimate) price_.estimated = price_.price;
    std::sort(price_.remarks.begin(), price_.remarks.end());
    return std::move(price_);
  }

  // Returns whether the model admits the source; if not, says so.
  bool Admits(PriceSource source) {
    if (source <= model_.last_source) return true;
    Remark(PriceRemark::kSourcesExhausted);
    return false;
  }

  void Ask() {
    if (AskGiven() || !Admits(PriceSource::kNodeAnnotation)) return;
    if (AskAnnotation()) return;
    const bool said = node_.provider.has_value() && IsPrice(*node_.provider);
    if (said && !Admits(PriceSource::kProvider)) return;
    if (said && *node_.provider >= LeastPlausible()) return TakeProvider();
    if (said) Remark(PriceRemark::kProviderPriceTooLow);
    AskLists(said);
    if (said && price_.source == PriceSource::kNone) TakeProvider();
  }

  // `said`: the provider has a price, which holds where nothing better is known.
  void AskLists(bool said) {
    if (!node_.has_template && node_.instance_type.empty()) return Remark(PriceRemark::kNoTemplate);
    if (!Admits(PriceSource::kInstanceType) || AskInstanceType()) return;
    if (!Admits(PriceSource::kFamily)) return;
    // The last source prices by capacity.
    if (!node_.has_template) return Remark(PriceRemark::kNoTemplate);
    if (AskFamily() || !Admits(PriceSource::kBaseRates)) return;
    if (!said || node_.cloud == kGce) AskBaseRates();
  }

  void TakeProvider() { Take(PriceSource::kProvider, *node_.provider, PriceBasis::kProvider); }

  // 0 where the hardware is not known.
  double LeastPlausible() const {
    if (!node_.has_template) return 0;
    const double hardware = ByResources(FamilyRates{}) + GpusAtBaseRate();
    return hardware * (node_.spot ? kDeepSpotShare : 1) * kLeastShareOfHardware;
  }

  double GpusAtBaseRate() const {
    return static_cast<double>(node_.gpus) * BaseRate(model_, &BaseRates::gpu, kDefault.gpu);
  }

  bool Take(PriceSource source, double price, PriceBasis basis) {
    price_.source = source;
    price_.basis = basis;
    Add(PricePartKind::kMachine, price);
    return true;
  }

  // Takes a price of this folder's own making, with what it lacks. What is paid for a reserved node is not
  // known: the price of a node that is paid by the hour is used instead.
  bool TakeListed(PriceSource source, double price, PriceBasis basis) {
    if (node_.reserved) {
      Remark(PriceRemark::kReserved);
      basis = PriceBasis::kEstimate;
    }
    return Take(source, price,
                price_.spot_ratio > 0 && basis == PriceBasis::kList ? PriceBasis::kSpotRatio : basis);
  }

  void AddEstimate(PricePartKind kind, double price) {
    Add(kind, price);
    price_.estimated += price;
  }

  // `os`: what the price is of; empty: that is not known, and may be the node's own.
  void AddLicence(absl::string_view os) {
    if (!node_.windows || os != "linux") return;
    Remark(PriceRemark::kWindowsLicence);
    AddEstimate(PricePartKind::kLicence, CpusOf(node_.milli_cpu) * kWindowsCpu);
  }

  bool AskGiven() {
    if (!node_.given.has_value()) return false;
    if (IsPrice(*node_.given)) return Take(PriceSource::kGiven, *node_.given, PriceBasis::kGiven);
    Remark(PriceRemark::kGivenPriceInvalid);
    return false;
  }

  bool AskAnnotation() {
    const bool valid = node_.annotated.has_value() && IsPrice(*node_.annotated);
    if (valid) return Take(PriceSource::kNodeAnnotation, *node_.annotated, PriceBasis::kGiven);
    if (node_.annotation_invalid || node_.annotated.has_value()) Remark(PriceRemark::kAnnotationInvalid);
    return false;
  }

  // Returns whether the node may be of the cloud whose prices these are: other clouds use names of types that
  // AWS and GCE have.
  bool MayPrice(const PriceCatalogue& catalogue) const {
    return catalogue.provider.empty() || !IsOtherCloud(node_.cloud, catalogue.provider);
  }

  bool AskInstanceType() {
    if (node_.instance_type.empty()) {
      Remark(PriceRemark::kNoInstanceType);
      return false;
    }
    const std::string type = absl::AsciiStrToLower(node_.instance_type);
    const PriceCatalogue* best = nullptr;
    Regional best_at;
    for (const auto& catalogue : model_.catalogues) {
      if (!MayPrice(*catalogue)) continue;
      const InstancePrice* const found = Find(catalogue->types, type);
      const Regional at = found == nullptr ? Regional() : InRegion(*catalogue, *found);
      if (at.price == nullptr || (best != nullptr && Fitness(at) <= Fitness(best_at))) continue;
      best = catalogue.get();
      best_at = at;
    }
    if (best != nullptr) return TakeType(*best, best_at);
    Remark(PriceRemark::kInstanceTypeNotListed);
    return false;
  }

  struct Regional {
    const MachinePrice* price = nullptr;  // nullptr: there is none
    absl::string_view region;
  };
  // Orders prices: of the node's region or of a list without one, then without a spot ratio.
  std::pair<bool, bool> Fitness(const Regional& at) const {
    return {at.region.empty() || node_.region.empty() || at.region == node_.region,
            !node_.spot || at.price->spot.has_value()};
  }

  bool TakeType(const PriceCatalogue& catalogue, const Regional& at) {
    Name(catalogue, node_.instance_type, at.region);
    TakeListed(PriceSource::kInstanceType, PriceOf(*at.price), PriceBasis::kList);
    catalogue.gce.has_value() ? AddGceParts(*catalogue.gce) : AddAttachedGpus();
    AddLicence(catalogue.os);
    return true;
  }

  // The node's region where the list has it, else the list's own, else the first one with a price.
  Regional InRegion(const PriceCatalogue& catalogue, const InstancePrice& listed) const {
    const auto has = [&](const MachinePrice& price) { return Has(price, catalogue); };
    const size_t* const own = Find(catalogue.region_positions, node_.region);
    if (own != nullptr && *own < listed.elsewhere.size() && has(listed.elsewhere[*own])) {
      return {&listed.elsewhere[*own], catalogue.regions[*own]};
    }
    if (has(listed)) return {&listed, catalogue.region};
    for (size_t i = 0; i < listed.elsewhere.size(); ++i) {
      if (has(listed.elsewhere[i])) return {&listed.elsewhere[i], catalogue.regions[i]};
    }
    return {nullptr, ""};
  }

  // Returns whether the machine has a price that suits the node. A GCE list that has no spot price has a
  // factor for the family.
  bool Has(const MachinePrice& listed, const PriceCatalogue& catalogue) const {
    if (!node_.spot) return listed.on_demand.has_value();
    return listed.spot.has_value() || (listed.on_demand.has_value() && !catalogue.gce.has_value());
  }

  // Precondition: Has().
  double PriceOf(const MachinePrice& listed) {
    if (node_.spot && listed.spot.has_value()) return *listed.spot;
    return *listed.on_demand * SpotShare(std::nullopt);
  }

  // Returns the share of the on-demand price that the node costs. `factor`: that of a list.
  double SpotShare(std::optional<double> factor) {
    if (!node_.spot) return 1;
    if (model_.spot_factor.has_value()) {
      Remark(PriceRemark::kSpotFactorOfModel);
    } else {
      Remark(factor.has_value() ? PriceRemark::kSpotFactorOfCatalogue : PriceRemark::kSpotRatio);
    }
    price_.spot_ratio = model_.spot_factor.value_or(factor.value_or(kAverageSpotRatio));
    return price_.spot_ratio;
  }

  void Name(const PriceCatalogue& catalogue, absl::string_view key, absl::string_view region) {
    price_.catalogue = catalogue.name;
    price_.key = std::string(key);
    price_.region = std::string(region);
    price_.date = catalogue.date;
    if (!region.empty() && !node_.region.empty() && region != node_.region) {
      Remark(PriceRemark::kRegionNotListed);
    }
  }

  bool AskFamily() {
    if (node_.instance_type.empty()) return false;
    for (const auto& catalogue : model_.catalogues) {
      if (!MayPrice(*catalogue)) continue;
      if (catalogue->gce.has_value() ? AskGceFamily(*catalogue) : AskTableFamily(*catalogue)) return true;
    }
    Remark(PriceRemark::kFamilyNotListed);
    return false;
  }

  bool AskGceFamily(const PriceCatalogue& catalogue) {
    const FamilyRates* const rates = FindGceFamily(*catalogue.gce, node_.instance_type);
    if (rates == nullptr || (!rates->cpu.has_value() && !rates->memory_gib.has_value())) return false;
    Name(catalogue, GceFamily(node_.instance_type), catalogue.region);
    const double price = ByResources(*rates) * SpotShare(OrBaseFactor(rates->spot_factor));
    TakeListed(PriceSource::kFamily, price, PriceBasis::kList);
    AddGceParts(*catalogue.gce);
    AddLicence(catalogue.os);
    return true;
  }

  bool AskTableFamily(const PriceCatalogue& catalogue) {
    const std::vector<FamilyMember>* const members =
        Find(catalogue.families, absl::AsciiStrToLower(FamilyKeyOf(node_.instance_type)));
    const double cpus = CpusOf(node_.milli_cpu);
    if (members == nullptr || cpus <= 0) return false;
    const FamilyMember* nearest = nullptr;
    double distance = 0;
    for (const FamilyMember& member : *members) {
      if (!Has(member.price, catalogue)) continue;
      const double ratio = std::max(member.cpus / cpus, cpus / member.cpus);
      if (nearest != nullptr && ratio >= distance) continue;
      nearest = &member;
      distance = ratio;
    }
    if (nearest == nullptr) return false;
    Name(catalogue, nearest->type, catalogue.region);
    const double price = PriceOf(nearest->price) * (cpus / nearest->cpus);
    TakeListed(PriceSource::kFamily, price, PriceBasis::kEstimate);
    AddAttachedGpus();
    AddLicence(catalogue.os);
    return true;
  }

  // Beside a list of GCE, a node that nothing says is of another cloud is priced as one of GCE.
  void AskBaseRates() {
    if (node_.milli_cpu <= 0 && node_.memory_bytes <= 0) return Remark(PriceRemark::kNoTemplate);
    const bool may_be_gce = node_.cloud.empty() || node_.cloud == kGce;
    const std::optional<double> factor = may_be_gce ? OrBaseFactor(std::nullopt) : std::nullopt;
    const double share = SpotShare(factor);
    TakeListed(PriceSource::kBaseRates, ByResources(FamilyRates{}) * share, PriceBasis::kEstimate);
    const GcePrices* const gce = may_be_gce ? GceList() : nullptr;
    gce != nullptr ? AddGceParts(*gce) : Add(PricePartKind::kGpu, GpusAtBaseRate() * share);
    AddLicence("linux");
  }

  const GcePrices* GceList() const {
    for (const auto& catalogue : model_.catalogues) {
      if (catalogue->gce.has_value()) return &*catalogue->gce;
    }
    return nullptr;
  }

  // GCE attaches GPUs to machines of its first generation; all others include them in the price of the type.
  void AddAttachedGpus() {
    if (node_.gpus == 0 || !TakesGpus(node_.instance_type)) return;
    const GcePrices* const gce = GceList();
    gce == nullptr ? AddEstimate(PricePartKind::kGpu, GpusAtBaseRate()) : AddGpus(*gce);
  }

  // In the order in which GCE's model adds them.
  double ByResources(const FamilyRates& rates) const {
    double price =
        CpusOf(node_.milli_cpu) * rates.cpu.value_or(BaseRate(model_, &BaseRates::cpu, kDefault.cpu));
    price += Gib(node_.memory_bytes) *
             rates.memory_gib.value_or(BaseRate(model_, &BaseRates::memory_gib, kDefault.memory_gib));
    price += Gib(node_.ephemeral_bytes) * BaseRate(model_, &BaseRates::ephemeral_gib, kDefault.ephemeral_gib);
    return price;
  }

  // The factor of a family of GCE, else the base factor of the lists, if any.
  std::optional<double> OrBaseFactor(std::optional<double> family) const {
    if (family.has_value()) return family;
    for (const auto& catalogue : model_.catalogues) {
      if (catalogue->base.spot_factor.has_value()) return catalogue->base.spot_factor;
    }
    return std::nullopt;
  }

  void AddGceParts(const GcePrices& gce) {
    Add(PricePartKind::kLocalSsd,
        node_.local_ssds * kLocalSsdGib * (node_.spot ? gce.spot_local_ssd_gib : gce.local_ssd_gib));
    const double* const disk =
        Find(gce.boot_disk_gib, node_.boot_disk_type.empty() ? kDefaultBootDiskType : node_.boot_disk_type);
    if (disk == nullptr) Remark(PriceRemark::kBootDiskTypeNotListed);
    const int64_t gib = node_.boot_disk_gib == 0 ? kDefaultBootDiskGib : node_.boot_disk_gib;
    Add(PricePartKind::kBootDisk, (disk == nullptr ? 0 : *disk) * static_cast<double>(gib));
    AddGpus(gce);
  }

  void AddGpus(const GcePrices& gce) {
    if (node_.gpus == 0) return;
    const double* const gpu =
        node_.gpu_type.has_value() ? Find(node_.spot ? gce.spot_gpus : gce.gpus, *node_.gpu_type) : nullptr;
    if (gpu != nullptr) return Add(PricePartKind::kGpu, static_cast<double>(node_.gpus) * *gpu);
    Remark(PriceRemark::kGpuTypeNotListed);
    AddEstimate(PricePartKind::kGpu, GpusAtBaseRate());
  }

  static constexpr ResourceRates kDefault = {};

  const PriceModel& model_;
  const PricedNode& node_;
  NodePrice price_;
};

}  // namespace

double PodPrice(const ResourceRates& rates, const PodRequests& pod) {
  double price = CpusOf(pod.milli_cpu) * rates.cpu;
  price += Gib(pod.memory_bytes) * rates.memory_gib;
  price += Gib(pod.ephemeral_bytes) * rates.ephemeral_gib;
  if (pod.ephemeral_bytes > 0) price += rates.ephemeral_flat;
  price += static_cast<double>(pod.gpus) * rates.gpu;
  return price;
}

bool TakesGpus(absl::string_view instance_type) { return GceFamily(instance_type) == "n1"; }

NodePrice PriceNode(const PriceModel& model, const PricedNode& node) { return Pricing(model, node).Run(); }

}  // namespace loadline
