#include "plugin/convert/fit_options.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plugin/convert/fields.h"
#include "plugin/convert/load_line.h"
#include "plugin/convert/parse.h"
#include "plugin/convert/pod_rules.h"
#include "plugin/convert/selectors.h"
#include "plugin/convert/text.h"

namespace loadline {
namespace {

const v1::FitOptions& OptionsOf(const v1::FitOptions& options, absl::string_view scheduler_name) {
  for (const v1::SchedulerProfile& profile : options.profiles()) {
    if (profile.scheduler_name() == scheduler_name) return profile.options();
  }
  return options;
}

// Decodes the options of one profile.
absl::StatusOr<FitOptions> DecodeProfile(const v1::FitOptions& message, int minor) {
  FitOptions options;
  options.minor = minor;
  if (!message.added_affinity().empty()) {
    k8s::v1::NodeAffinity affinity;
    if (absl::Status status = Parse(message.added_affinity(), "k8s.io.api.core.v1.NodeAffinity", &affinity);
        !status.ok()) {
      return Annotate(status, "added_affinity", " ");
    }
    if (affinity.has_required()) options.added_affinity = ReadNodeSelector(affinity.required());
  }
  options.ignored_resources.insert(message.ignored_resources().begin(), message.ignored_resources().end());
  options.ignored_resource_groups.insert(message.ignored_resource_groups().begin(),
                                         message.ignored_resource_groups().end());
  // 1.37 does not have the defect any more.
  options.namespace_selector_sees_no_labels =
      message.has_defects() ? message.defects().namespace_selector_sees_no_labels() : minor < 37;
  options.most_allocated = message.most_allocated();
  for (const int filter : message.disabled_filters()) {
    const bool known = filter > 0 && filter < kFilterNames && filter != v1::VerdictGroup::LOAD_LINE;
    if (!known) return NoSuchValue("disabled_filters", filter);
    options.disabled |= uint32_t{1} << filter;
  }
  return options;
}

}  // namespace

absl::StatusOr<FitOptions> DecodeFitOptions(const v1::FitOptions& message) {
  const int minor = message.kubernetes_minor() == 0 ? kFirstMinor : message.kubernetes_minor();
  if (minor < kFirstMinor || minor > kLastMinor) {
    return Refused(
        absl::StrCat("kubernetes_minor: ", minor, " is not in [", kFirstMinor, ", ", kLastMinor, "]"));
  }
  absl::StatusOr<FitOptions> options = DecodeProfile(message, minor);
  if (!options.ok()) return options.status();
  if (message.has_load_line()) {
    absl::StatusOr<DecodedLoadLine> line = DecodeLoadLine(message.load_line());
    if (!line.ok()) return Annotate(line.status(), "load_line");
    options->load_line = std::move(line->line);
  }
  if (absl::Status status = CheckEntries(message.profiles_size(), "profiles", kMaxSchedulerProfiles);
      !status.ok()) {
    return status;
  }
  for (int i = 0; i < message.profiles_size(); ++i) {
    const v1::SchedulerProfile& profile = message.profiles(i);
    const std::string at = absl::StrCat("profiles[", i, "]");
    absl::Status status = CheckName(profile.scheduler_name());
    if (status.ok() && profile.scheduler_name().empty()) status = Refused("is empty");
    if (!status.ok()) return Annotate(Annotate(status, "scheduler_name"), at);
    if (&options->Of(profile.scheduler_name()) != &*options) {
      return Annotate(
          Refused(absl::StrCat("scheduler_name: ", Quoted(profile.scheduler_name()), " occurs twice")), at);
    }
    if (profile.options().profiles_size() > 0)
      return Annotate(Refused("options.profiles: must be empty"), at);
    if (profile.options().kubernetes_minor() != 0)
      return Annotate(Refused("options.kubernetes_minor: must be 0"), at);
    if (profile.options().has_load_line()) return Annotate(Refused("options.load_line: must be unset"), at);
    absl::StatusOr<FitOptions> of_profile = DecodeProfile(profile.options(), minor);
    if (!of_profile.ok()) return Annotate(Annotate(of_profile.status(), "options"), at);
    of_profile->load_line = options->load_line;  // it holds for all pods
    options->profiles.push_back({profile.scheduler_name(), *std::move(of_profile)});
  }
  return options;
}

absl::Status ReadDefaultSpread(const v1::IncomingPod& message, const v1::FitOptions& all_options,
                               absl::string_view scheduler_name, const Labels& labels, IncomingPod* pod) {
  if (message.default_spread_selector().empty()) return absl::OkStatus();
  const v1::FitOptions& options = OptionsOf(all_options, scheduler_name);
  k8s::v1::LabelSelector selector;
  if (absl::Status status = Parse(message.default_spread_selector(), "meta.v1.LabelSelector", &selector);
      !status.ok()) {
    return Annotate(status, "default_spread_selector", " ");
  }
  for (int i = 0; i < options.default_spread_constraints_size(); ++i) {
    k8s::v1::TopologySpreadConstraint constraint;
    if (absl::Status status = Parse(options.default_spread_constraints(i),
                                    "k8s.io.api.core.v1.TopologySpreadConstraint", &constraint);
        !status.ok()) {
      return Annotate(status, absl::StrCat("options.default_spread_constraints[", i, "]"), " ");
    }
    std::string error;
    std::optional<SpreadConstraint> read = ReadSpreadConstraint(constraint, labels, &error);
    if (!read.has_value()) continue;
    read->selector = ReadLabelSelector(selector, /*present=*/true, &error);
    if (!error.empty()) return Refused(absl::StrCat("default_spread_selector: ", error));
    // An empty selector means that nothing selects the pod.
    if (!read->selector.Everything()) pod->default_spread.push_back(*std::move(read));
  }
  return absl::OkStatus();
}

}  // namespace loadline
