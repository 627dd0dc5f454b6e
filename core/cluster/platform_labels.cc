#include "core/cluster/platform_labels.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace loadline {
namespace {

// The first label that a node has counts: names come before numbers, and finer divisions before coarser ones.
constexpr absl::string_view kPoolLabels[] = {
    "karpenter.sh/nodepool",
    "karpenter.sh/provisioner-name",
    "eks.amazonaws.com/nodegroup",
    "alpha.eksctl.io/nodegroup-name",
    "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool",
    "agentpool",
    "hypershift.openshift.io/nodePool",
    "machine.openshift.io/cluster-api-machineset",
    "oke.oraclecloud.com/pool.name",
    "oke.oraclecloud.com/pool.id",
    "oci.oraclecloud.com/oke-nodepool-id",
    "oci.oraclecloud.com/node-pool-id",
    "doks.digitalocean.com/node-pool",
    "doks.digitalocean.com/node-pool-id",
    "worker.gardener.cloud/pool",
    "worker.garden.sapcloud.io/group",
    "hcloud/node-group",
    "k8s.scaleway.com/pool-name",
    "k8s.scaleway.com/pool",
    "topology.cluster.x-k8s.io/deployment-name",
    "cluster.x-k8s.io/deployment-name",
    "cluster.x-k8s.io/set-name",
    "node.cluster.x-k8s.io/nodepool",
    "kops.k8s.io/instancegroup",
    "kubernetes.civo.com/civo-node-pool",
    "lke.linode.com/pool-id",
    "vke.vultr.com/node-pool",
    "node.exoscale.net/nodepool-id",
    "ibm-cloud.kubernetes.io/worker-pool-name",
    "ibm-cloud.kubernetes.io/worker-pool-id",
    "alibabacloud.com/nodepool-id",
    "cce.cloud.com/cce-nodepool",
    "yandex.cloud/node-group-id",
    "spotinst.io/ocean-vng-id",
    "scheduling.cast.ai/node-template",
};

// The last words of labels for pools that nobody listed, in lower case and without punctuation.
constexpr absl::string_view kPoolWords[] = {
    "nodepool",       "nodepoolname",  "nodepoolid",        "nodegroup",      "nodegroupname", "nodegroupid",
    "agentpool",      "workerpool",    "workergroup",       "workerpoolname", "machinepool",   "machineset",
    "machinesetname", "instancegroup", "machinedeployment", "pool",           "poolname",      "poolid",
};

// The ends of these words, by which most labels are passed over at once.
constexpr absl::string_view kPoolEnds[] = {"pool", "name", "id", "group", "set", "deployment"};

// The names, after the slash, of labels for zones and regions: those of Kubernetes, of CSI drivers
// ("topology.ebs.csi.aws.com/zone", "topology.csi.vmware.com/k8s-zone") and of AWS
// ("topology.k8s.aws/zone-id").
constexpr absl::string_view kZoneWords[] = {"zone", "region", "zone-id", "k8s-zone", "k8s-region"};

// Beside the hostname, labels of zones and pools, and those of domains that begin with "topology.".
constexpr absl::string_view kPlaceLabels[] = {
    "beta.kubernetes.io/fluentd-ds-ready",
    "alpha.eksctl.io/instance-id",
    "eks.amazonaws.com/sourceLaunchTemplateId",
    "eks.amazonaws.com/sourceLaunchTemplateVersion",
    "k8s.amazonaws.com/eniConfig",
    "csi.hetzner.cloud/location",
    "instance.hetzner.cloud/provided-by",
    "oci.oraclecloud.com/fault-domain",
    "ibm-cloud.kubernetes.io/worker-id",
    "ibm-cloud.kubernetes.io/external-ip",
    "ibm-cloud.kubernetes.io/internal-ip",
    "k8s.scaleway.com/node",
    "doks.digitalocean.com/node-id",
};

constexpr absl::string_view kInstanceTypeLabels[] = {"node.kubernetes.io/instance-type",
                                                     "beta.kubernetes.io/instance-type"};
// The values of these labels on nodes of k3s and RKE2.
constexpr absl::string_view kDistributions[] = {"k3s", "rke2"};
constexpr absl::string_view kZoneLabels[] = {kZoneLabel, "failure-domain.beta.kubernetes.io/zone"};
constexpr absl::string_view kRegionLabels[] = {"topology.kubernetes.io/region",
                                               "failure-domain.beta.kubernetes.io/region"};
constexpr absl::string_view kOperatingSystemLabels[] = {kOperatingSystemLabel, "beta.kubernetes.io/os"};
constexpr absl::string_view kArchitectureLabels[] = {kArchitectureLabel, "beta.kubernetes.io/arch"};

constexpr absl::string_view kPlainRoles[] = {
    "worker", "node", "agent", "compute", "spot-worker", "spot", "on-demand-worker", "on-demand"};

// The first part of labels that only one cloud sets.
constexpr std::pair<absl::string_view, absl::string_view> kCloudPrefixes[] = {
    {"cloud.google.com/", "gce"},
    {"eks.amazonaws.com/", "aws"},
    {"karpenter.k8s.aws/", "aws"},
    {"kubernetes.azure.com/", "azure"}};

// The first words of provider ids of clouds that sell machines. Source: their cloud controller managers.
constexpr absl::string_view kClouds[] = {
    "aws",          "azure",      "gce",          "alicloud",     "brightbox", "cherryservers",
    "civo",         "cloudstack", "digitalocean", "equinixmetal", "exoscale",  "external-cloudstack",
    "hcloud",       "hrobot",     "huaweicloud",  "ibm",          "ibmcloud",  "linode",
    "oci",          "openstack",  "packet",       "qcloud",       "scaleway",  "stackit",
    "tencentcloud", "upcloud",    "vultr",        "yandex"};

template <typename List>
bool Has(const List& list, absl::string_view text) {
  return std::find(std::begin(list), std::end(list), text) != std::end(list);
}

// "example.com/Node-Pool" and "example.com/team-node-pool", which end in "nodepool". One word alone, such as
// that of "ip-pool", has to be the whole name.
bool EndsInPoolWord(absl::string_view key) {
  const auto ends_in = [&](absl::string_view end) { return absl::EndsWithIgnoreCase(key, end); };
  if (std::none_of(std::begin(kPoolEnds), std::end(kPoolEnds), ends_in)) return false;
  const size_t slash = key.rfind('/');
  if (slash != absl::string_view::npos) key.remove_prefix(slash + 1);
  const std::string lower = absl::AsciiStrToLower(key);
  for (absl::string_view rest = lower;;) {
    const std::string word = absl::StrReplaceAll(rest, {{"-", ""}, {"_", ""}, {".", ""}});
    if (Has(kPoolWords, word) && (rest.size() == lower.size() || !absl::StartsWith(word, "pool")))
      return true;
    const size_t end = rest.find_first_of("-_.");
    if (end == absl::string_view::npos) return false;
    rest.remove_prefix(end + 1);
  }
}

}  // namespace

absl::string_view FirstOf(const Labels& labels, std::span<const absl::string_view> keys) {
  for (const absl::string_view key : keys) {
    const std::string* const value = labels.Find(key);
    if (value != nullptr && !value->empty()) return *value;
  }
  return "";
}

std::span<const std::span<const absl::string_view>> KeysOfFacts() {
  static constexpr std::span<const absl::string_view> kFacts[] = {
      kInstanceTypeLabels, kOperatingSystemLabels, kArchitectureLabels, kZoneLabels, kRegionLabels};
  return kFacts;
}

absl::string_view PoolOf(const Labels& labels) {
  if (const absl::string_view pool = FirstOf(labels, kPoolLabels); !pool.empty()) return pool;
  for (const Label& label : labels) {
    if (!label.value.empty() && EndsInPoolWord(label.key)) return label.value;
  }
  return "";
}

absl::string_view InstanceTypeOf(const Labels& labels) { return FirstOf(labels, kInstanceTypeLabels); }

absl::string_view MachineTypeOf(const Labels& labels) {
  const absl::string_view type = InstanceTypeOf(labels);
  return Has(kDistributions, type) ? "" : type;
}

bool IsOtherCloud(absl::string_view cloud, absl::string_view of) {
  return cloud != of && Has(kClouds, cloud);
}

absl::string_view ZoneOf(const Labels& labels) { return FirstOf(labels, kZoneLabels); }

absl::string_view RegionOf(const Labels& labels) { return FirstOf(labels, kRegionLabels); }

absl::string_view OperatingSystemOf(const Labels& labels) { return FirstOf(labels, kOperatingSystemLabels); }

absl::string_view ArchitectureOf(const Labels& labels) { return FirstOf(labels, kArchitectureLabels); }

absl::string_view CloudOf(const Labels& labels) {
  for (const auto& [prefix, cloud] : kCloudPrefixes) {
    for (const Label& label : labels) {
      if (absl::StartsWith(label.key, prefix)) return cloud;
    }
  }
  return "";
}

absl::string_view CloudOfProviderId(absl::string_view provider_id) {
  const size_t end = provider_id.find(':');
  return end == absl::string_view::npos ? "" : provider_id.substr(0, end);
}

std::vector<absl::string_view> RolesOf(const Labels& labels) {
  std::vector<absl::string_view> roles;
  for (const Label& label : labels) {  // in the order of keys
    absl::string_view role = label.key;
    if (!absl::ConsumePrefix(&role, kNodeRolePrefix) || role.empty() || Has(kPlainRoles, role)) continue;
    if (!absl::EqualsIgnoreCase(label.value, "false")) roles.push_back(role);
  }
  return roles;
}

bool IsZoneLabel(absl::string_view key) {
  const size_t slash = key.rfind('/');
  return slash != absl::string_view::npos && Has(kZoneWords, key.substr(slash + 1));
}

bool IsPlaceLabel(absl::string_view key) {
  return key == kHostnameLabel || absl::StartsWith(key, "topology.") || IsZoneLabel(key) ||
         Has(kPlaceLabels, key) || Has(kPoolLabels, key) || EndsInPoolWord(key);
}

bool IsInstanceTypeLabel(absl::string_view key) { return Has(kInstanceTypeLabels, key); }

}  // namespace loadline
