#include "plugin/convert/prices.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/cluster/gpu_resources.h"
#include "core/cluster/platform_labels.h"
#include "core/price/capacity_type.h"
#include "core/price/own_price.h"
#include "plugin/convert/catalogue_cache.h"
#include "plugin/convert/fields.h"
#include "plugin/convert/parse.h"
#include "plugin/convert/pod.h"
#include "plugin/convert/selectors.h"
#include "plugin/convert/text.h"

namespace loadline {
namespace {

// In the order of asking.
constexpr std::pair<PriceSource, v1::NodePrice::Source> kSources[] = {
    {PriceSource::kGiven, v1::NodePrice::GIVEN},
    {PriceSource::kNodeAnnotation, v1::NodePrice::NODE_ANNOTATION},
    {PriceSource::kProvider, v1::NodePrice::PROVIDER},
    {PriceSource::kInstanceType, v1::NodePrice::INSTANCE_TYPE},
    {PriceSource::kFamily, v1::NodePrice::FAMILY},
    {PriceSource::kBaseRates, v1::NodePrice::BASE_RATES}};

absl::Status SetPrice(absl::string_view field, double value, double* price) {
  if (absl::Status status = CheckNumber(field, value, 0, kMaxPrice); !status.ok()) return status;
  *price = value;
  return absl::OkStatus();
}

absl::Status DecodeBaseRates(const v1::ResourceRates& message, BaseRates* base) {
  if (message.has_ephemeral_flat_usd_per_hour()) {
    return absl::InvalidArgumentError("ephemeral_flat_usd_per_hour: is a price of pods only");
  }
  ResourceRates rates;
  if (absl::Status status = DecodeRates(message, &rates); !status.ok()) return status;
  if (message.has_cpu_usd_per_hour()) base->cpu = rates.cpu;
  if (message.has_memory_gib_usd_per_hour()) base->memory_gib = rates.memory_gib;
  if (message.has_gpu_usd_per_hour()) base->gpu = rates.gpu;
  if (message.has_ephemeral_gib_usd_per_hour()) base->ephemeral_gib = rates.ephemeral_gib;
  return absl::OkStatus();
}

absl::Status DecodeCatalogues(const v1::PriceModel& message, PriceModel* model) {
  if (absl::Status status = CheckEntries(message.catalogues_size(), "catalogues", kMaxCatalogues);
      !status.ok()) {
    return status;
  }
  std::set<absl::string_view> names;
  for (int i = 0; i < message.catalogues_size(); ++i) {
    const v1::PriceCatalogue& catalogue = message.catalogues(i);
    const std::string field = absl::StrCat("catalogues[", i, "]");
    if (catalogue.name().empty()) return absl::InvalidArgumentError(absl::StrCat(field, ": name: required"));
    if (absl::Status status = CheckName(catalogue.name()); !status.ok()) {
      return Annotate(status, absl::StrCat(field, ": name"));
    }
    if (!names.insert(catalogue.name()).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(field, ": name: ", Quoted(catalogue.name()), " is that of a catalogue before"));
    }
    absl::StatusOr<std::shared_ptr<const PriceCatalogue>> parsed =
        CachedPriceCatalogue(catalogue.name(), catalogue.csv());
    if (!parsed.ok()) {
      return Annotate(parsed.status(), absl::StrCat(field, " ", Quoted(catalogue.name())));
    }
    model->catalogues.push_back(*std::move(parsed));
  }
  return absl::OkStatus();
}

absl::Status DecodeCommitments(const v1::PriceModel& message, PriceModel* model) {
  for (int i = 0; i < message.commitments_size(); ++i) {
    const v1::Commitment& commitment = message.commitments(i);
    const int64_t unused = commitment.unused_milli_cpu();
    if (absl::Status status = CheckRange("unused_milli_cpu", unused, 0, kMaxAmount); !status.ok()) {
      return Annotate(status, absl::StrCat("commitments[", i, "]"));
    }
    model->commitments.push_back({commitment.instance(), unused});
  }
  return absl::OkStatus();
}

// At 1 - 2^-20 a spot node costs a million times its price; closer to 1 sums would lose their bound.
absl::Status CheckRisk(absl::string_view field, double risk) {
  if (risk == 1) return absl::InvalidArgumentError(absl::StrCat(field, ": is 1"));
  return CheckNumber(field, risk, 0, 1 - std::ldexp(1.0, -20));
}

absl::Status DecodeRisks(const v1::PriceModel& message, PriceModel* model) {
  constexpr int kMostRisks = 1000;
  if (absl::Status status = CheckRisk("interruption_risk", message.interruption_risk()); !status.ok())
    return status;
  model->interruption_risk = message.interruption_risk();
  if (absl::Status status = CheckSize("interruption_risks", message.interruption_risks_size(), kMostRisks);
      !status.ok()) {
    return status;
  }
  absl::flat_hash_set<absl::string_view> instances;
  for (int i = 0; i < message.interruption_risks_size(); ++i) {
    const v1::InterruptionRisk& risk = message.interruption_risks(i);
    absl::Status status = CheckRisk("risk", risk.risk());
    if (risk.instance().empty()) status.Update(absl::InvalidArgumentError("instance: is empty"));
    if (!instances.insert(risk.instance()).second)
      status.Update(absl::InvalidArgumentError("instance: occurs twice"));
    if (!status.ok()) return Annotate(status, absl::StrCat("interruption_risks[", i, "]"), ".");
    model->interruption_risks.push_back({risk.instance(), risk.risk()});
  }
  return absl::OkStatus();
}

absl::Status DecodeLastSource(v1::NodePrice::Source source, PriceModel* model) {
  if (source == v1::NodePrice::SOURCE_UNSPECIFIED) return absl::OkStatus();
  for (const auto& [core, message] : kSources) {
    if (message != source) continue;
    model->last_source = core;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("last_source: there is no value ", static_cast<int>(source)));
}

// A number in an annotation; 0 where it is none, as Cluster Autoscaler reads it.
template <typename Number, typename Parser>
Number NumberOf(const std::string* text, Parser parser) {
  Number number = 0;
  const bool valid = text != nullptr && parser(*text, &number) && number > 0 && number <= Number{1 << 30};
  return valid ? number : Number{0};
}

void ReadGce(const Labels& labels, const StringEntries& annotations, PricedNode* node) {
  if (const std::string* const type = labels.Find(kGceGpuLabel)) node->gpu_type = *type;
  const std::string* const by_annotation =
      FindEntry(annotations, "cluster-autoscaler/gce/ephemeral-storage-local-ssd");
  const std::string* const by_label = labels.Find("cloud.google.com/gke-ephemeral-storage-local-ssd");
  const bool uses_ssds =
      (by_annotation != nullptr && *by_annotation == "true") || (by_label != nullptr && *by_label == "true");
  if (uses_ssds) {
    node->local_ssds =
        NumberOf<double>(FindEntry(annotations, "cluster-autoscaler/gce/local-ssd-count"),
                         [](const std::string& s, double* n) { return absl::SimpleAtod(s, n); });
  }
  node->boot_disk_gib =
      NumberOf<int64_t>(FindEntry(annotations, "cluster-autoscaler/gce/boot-disk-size"),
                        [](const std::string& s, int64_t* n) { return absl::SimpleAtoi(s, n); });
  const std::string* disk = labels.Find("cloud.google.com/gke-boot-disk");
  if (disk == nullptr) disk = FindEntry(annotations, "cluster-autoscaler/gce/boot-disk-type");
  if (disk != nullptr) node->boot_disk_type = *disk;
}

void ReadLabelsOfNode(const Labels& labels, const StringEntries& annotations, DecodedTemplate* decoded) {
  PricedNode& node = decoded->node;
  node.gpus = GpusBehind(node.gpus, labels);
  node.instance_type = std::string(InstanceTypeOf(labels));
  node.region = std::string(RegionOf(labels));
  node.cloud = std::string(CloudOf(labels));
  node.windows = OperatingSystemOf(labels) == "windows";
  const CapacityType capacity = CapacityTypeOf(labels);
  node.spot = capacity == CapacityType::kSpot;
  node.reserved = capacity == CapacityType::kReserved;
  decoded->has_gpu = decoded->has_gpu || HasGpuLabel(labels);
  const std::string* price = FindEntry(annotations, kNodePriceKey);
  if (price == nullptr) price = labels.Find(kNodePriceKey);
  if (price != nullptr && *price == kOneOfSeveral) price = nullptr;
  ReadNodePrice(price, &node);
  ReadGce(labels, annotations, &node);
}

void ReadAmounts(const ResourceAmounts& capacity, const ResourceAmounts& allocatable,
                 const ResourceNames& names, DecodedTemplate* decoded) {
  decoded->node.milli_cpu = capacity.Get(kCpu);
  decoded->node.memory_bytes = capacity.Get(kMemory);
  decoded->node.ephemeral_bytes = capacity.Get(kEphemeralStorage);
  decoded->node.gpus = GpusOf(capacity, names);
  decoded->has_gpu = GpusOf(allocatable, names) > 0;
}

}  // namespace

absl::Status DecodeRates(const v1::ResourceRates& message, ResourceRates* rates) {
  absl::Status status;
  if (message.has_cpu_usd_per_hour()) {
    status.Update(SetPrice("cpu_usd_per_hour", message.cpu_usd_per_hour(), &rates->cpu));
  }
  if (message.has_memory_gib_usd_per_hour()) {
    status.Update(SetPrice("memory_gib_usd_per_hour", message.memory_gib_usd_per_hour(), &rates->memory_gib));
  }
  if (message.has_gpu_usd_per_hour()) {
    status.Update(SetPrice("gpu_usd_per_hour", message.gpu_usd_per_hour(), &rates->gpu));
  }
  if (message.has_ephemeral_gib_usd_per_hour()) {
    status.Update(
        SetPrice("ephemeral_gib_usd_per_hour", message.ephemeral_gib_usd_per_hour(), &rates->ephemeral_gib));
  }
  if (message.has_ephemeral_flat_usd_per_hour()) {
    status.Update(SetPrice("ephemeral_flat_usd_per_hour", message.ephemeral_flat_usd_per_hour(),
                           &rates->ephemeral_flat));
  }
  return status;
}

v1::ResourceRates EncodeRates(const ResourceRates& rates) {
  v1::ResourceRates message;
  message.set_cpu_usd_per_hour(rates.cpu);
  message.set_memory_gib_usd_per_hour(rates.memory_gib);
  message.set_gpu_usd_per_hour(rates.gpu);
  message.set_ephemeral_gib_usd_per_hour(rates.ephemeral_gib);
  message.set_ephemeral_flat_usd_per_hour(rates.ephemeral_flat);
  return message;
}

absl::StatusOr<PriceModel> DecodePriceModel(const v1::PriceModel& message) {
  PriceModel model;
  if (absl::Status status = DecodeCatalogues(message, &model); !status.ok()) return status;
  if (absl::Status status = DecodeBaseRates(message.base_rates(), &model.base); !status.ok()) {
    return Annotate(status, "base_rates");
  }
  absl::Status status = DecodeLastSource(message.last_source(), &model);
  if (message.has_spot_factor()) {
    if (message.spot_factor() == 0) status.Update(absl::InvalidArgumentError("spot_factor: is 0"));
    status.Update(CheckNumber("spot_factor", message.spot_factor(), 0, 1));
    model.spot_factor = message.spot_factor();
  }
  status.Update(DecodeRisks(message, &model));
  status.Update(
      SetPrice("node_surcharge_usd_per_hour", message.node_surcharge_usd_per_hour(), &model.surcharge));
  status.Update(DecodeCommitments(message, &model));
  if (!status.ok()) return status;
  return model;
}

absl::StatusOr<DecodedTemplate> DecodeTemplate(absl::string_view bytes, ResourceReader* resources) {
  if (absl::Status status = CheckObjectSize(bytes); !status.ok()) return status;
  k8s::v1::Node message;
  if (absl::Status status = ParseObject(bytes, "k8s.io.api.core.v1.Node", &message); !status.ok())
    return status;
  const k8s::v1::NodeStatus& node_status = message.status();
  ResourceList allocatable;
  resources->OfNode();
  absl::Status status = resources->Read(node_status.allocatable(), "status.allocatable", &allocatable);
  if (allocatable.empty())
    status.Update(resources->Read(node_status.capacity(), "status.capacity", &allocatable));
  if (!status.ok()) return Annotate(status, absl::StrCat("(", Quoted(message.metadata().name()), ")"));
  NodeShape offer =
      MakeNodeShape(ToAmounts(allocatable), resources->names(), ReadLabels(message.metadata().labels()));
  absl::StatusOr<DecodedTemplate> decoded = PricedTemplate(message, offer, resources);
  if (decoded.ok()) decoded->offer = std::move(offer);
  return decoded;
}

absl::StatusOr<DecodedTemplate> PricedTemplate(const k8s::v1::Node& message, const NodeShape& shape,
                                               ResourceReader* resources) {
  ResourceList capacity;
  resources->OfNode();
  absl::Status status = resources->Read(message.status().capacity(), "status.capacity", &capacity);
  if (!status.ok()) return Annotate(status, absl::StrCat("(", Quoted(message.metadata().name()), ")"));
  DecodedTemplate decoded;
  ReadAmounts(capacity.empty() ? shape.allocatable : ToAmounts(capacity), shape.allocatable,
              resources->names(), &decoded);
  ReadLabelsOfNode(shape.labels, message.metadata().annotations(), &decoded);
  const absl::string_view cloud = CloudOfProviderId(message.spec().provider_id());
  if (!cloud.empty()) decoded.node.cloud = std::string(cloud);
  return decoded;
}

void CompletePriced(const PriceFacts& nodes, const Labels& stated, bool states_spot, PricedNode* node) {
  if (node->region.empty()) node->region = nodes.region;
  if (node->cloud.empty()) node->cloud = nodes.cloud;
  if (OperatingSystemOf(stated).empty()) node->windows = nodes.operating_system == "windows";
  if (!states_spot && CapacityTypeOf(stated) == CapacityType::kUnknown) {
    node->spot = nodes.capacity_type == CapacityType::kSpot;
    node->reserved = nodes.capacity_type == CapacityType::kReserved;
  }
  if (node->annotated.has_value() || node->annotation_invalid) return;
  ReadNodePrice(nodes.stated_price.empty() ? nullptr : &nodes.stated_price, node);
}

void ReadNodePrice(const std::string* text, PricedNode* node) {
  if (text != nullptr) node->annotated = ReadStatedPrice(*text);
  node->annotation_invalid = text != nullptr && !node->annotated.has_value();
}

DecodedTemplate TemplateOf(const NodeToCome& made, const ResourceNames& names) {
  StringEntries annotations;
  if (!made.stated_price.empty()) {
    auto* const entry = annotations.Add();
    entry->set_key(std::string(kNodePriceKey));
    entry->set_value(made.stated_price);
  }
  DecodedTemplate decoded;
  ReadAmounts(made.capacity, made.model.shape.allocatable, names, &decoded);
  ReadLabelsOfNode(made.model.shape.labels, annotations, &decoded);
  if (!made.cloud.empty()) decoded.node.cloud = made.cloud;
  // The labels that most nodes share may not say it, see NewNodeOf(); most nodes of the group do.
  decoded.node.spot = made.capacity_type == CapacityType::kSpot;
  decoded.node.reserved = made.capacity_type == CapacityType::kReserved;
  decoded.offer = made.model.shape;
  return decoded;
}

std::string EncodeNodeToCome(const NodeToCome& made, const std::string& name, const ResourceNames& names) {
  k8s::v1::Node node;
  node.mutable_metadata()->set_name(name);
  const auto add_label = [&](absl::string_view key, const std::string& value) {
    auto* const label = node.mutable_metadata()->add_labels();
    label->set_key(std::string(key));
    label->set_value(value);
  };
  for (const Label& label : made.model.shape.labels) {
    if (label.key != kCapacityTypeLabel) add_label(label.key, label.value);
  }
  // Labels of several conventions may say it; this one is read before all others.
  const bool unknown = made.capacity_type == CapacityType::kUnknown;
  add_label(kCapacityTypeLabel, std::string(Name(unknown ? CapacityType::kOnDemand : made.capacity_type)));
  if (!made.stated_price.empty()) {
    auto* const price = node.mutable_metadata()->add_annotations();
    price->set_key(std::string(kNodePriceKey));
    price->set_value(made.stated_price);
  }
  if (!made.cloud.empty()) node.mutable_spec()->set_provider_id(absl::StrCat(made.cloud, "://"));
  const auto write = [&](const ResourceAmounts& amounts, auto add) {
    for (const auto& [id, amount] : amounts) {
      auto* const entry = add();
      entry->set_key(std::string(names.name(id)));
      entry->mutable_value()->set_string(absl::StrCat(amount, id == kCpu ? "m" : ""));
    }
  };
  write(made.capacity, [&] { return node.mutable_status()->add_capacity(); });
  write(made.model.shape.allocatable, [&] { return node.mutable_status()->add_allocatable(); });
  return node.SerializeAsString();
}

PodRequests PricedRequests(const PodShape& shape, const ResourceNames& names) {
  return {.milli_cpu = shape.requests.Get(kCpu),
          .memory_bytes = shape.requests.Get(kMemory),
          .ephemeral_bytes = shape.requests.Get(kEphemeralStorage),
          .gpus = GpusOf(shape.requests, names)};
}

v1::NodePrice EncodeNodePrice(const NodePrice& price) {
  static_assert(static_cast<int>(PriceRemark::kWindowsLicence) == v1::NodePrice::WINDOWS_LICENCE_ESTIMATED);
  static_assert(static_cast<int>(PricePartKind::kLicence) == v1::NodePrice::Part::LICENCE);
  static_assert(static_cast<int>(PriceBasis::kEstimate) == v1::NodePrice::ESTIMATE);
  v1::NodePrice message;
  for (const auto& [core, source] : kSources) {
    if (core == price.source) message.set_source(source);
  }
  message.set_basis(static_cast<v1::NodePrice::Basis>(price.basis));
  message.set_usd_per_hour(price.price);
  for (const PricePart& part : price.parts) {
    v1::NodePrice::Part* const out = message.add_parts();
    out->set_kind(static_cast<v1::NodePrice::Part::Kind>(part.kind));
    out->set_usd_per_hour(part.price);
  }
  for (const PriceRemark remark : price.remarks) {
    message.add_remarks(static_cast<v1::NodePrice::Remark>(remark));
  }
  message.set_catalogue(price.catalogue);
  message.set_key(price.key);
  message.set_region(price.region);
  message.set_date(price.date);
  message.set_spot(price.spot);
  message.set_spot_ratio(price.spot_ratio);
  return message;
}

}  // namespace loadline
