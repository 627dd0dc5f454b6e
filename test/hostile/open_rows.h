// Rows of the catalogue that are still broken, with what is wrong in the words of Findings. Who mends one
// takes its line away; the test demands it.
#ifndef LOADLINE_TEST_HOSTILE_OPEN_ROWS_H_
#define LOADLINE_TEST_HOSTILE_OPEN_ROWS_H_

#include <map>
#include <string>

namespace loadline {

inline constexpr size_t kOpenRows = 38;

inline const std::map<std::string, std::string>& OpenRows() {
  static const std::map<std::string, std::string>* const rows = new std::map<std::string, std::string>{
      {"1001DaemonPods", "refused,unnamed"},
      {"All", "refused"},
      {"BoundPodOf10001Tolerations", "refused,unnamed"},
      {"BoundPodOf1025Containers", "refused,unnamed"},
      {"BoundPodOf257ExtendedResources", "refused,unnamed"},
      {"BoundPodOf257ZeroAmounts", "refused"},
      {"BoundPodOfANameWithNulAndAnsi", "refused,unnamed"},
      {"BoundPodOfAmount1e30", "differs"},
      {"BoundPodOfAnnotationsBeyondTheLimit", "refused,unnamed"},
      {"BoundPodOfNegativeStatus", "refused,unnamed"},
      {"BoundPodThatSelects4097Keys", "refused,unnamed"},
      {"BudgetOver10001LabelKeys", "refused,unnamed"},
      {"BudgetOver4097LabelKeys", "refused,unnamed"},
      {"DaemonPodOf257ExtendedResources", "refused,unnamed"},
      {"DaemonSetOf1025Containers", "refused,unnamed"},
      {"DeploymentOf257ExtendedResourcesWithSlack", "refused,unnamed"},
      {"GroupOf100000000Nodes", "refused"},
      {"GroupOfGreatestMaximumOverTheSocket", "died,refused"},
      {"GroupOfGreatestMaximum", "memory,refused"},
      {"GroupWithATemplateThatIsNone", "refused,unnamed"},
      {"NamespaceOfANameThatIsNoUtf8", "refused,unnamed"},
      {"NodeOf300ExtendedResources", "refused,unnamed"},
      {"NodeOfANameWithAnsi", "refused,unnamed"},
      {"NodeOfNegativeAllocatable", "refused,unnamed"},
      {"WaitingPodOf10001SpreadConstraints", "refused,unnamed"},
      {"WaitingPodOf10001Tolerations", "refused,unnamed"},
      {"WaitingPodOf1025Containers", "refused,unnamed"},
      {"WaitingPodOf1025InitContainers", "refused,unnamed"},
      {"WaitingPodOf257ExtendedResources", "refused,unnamed"},
      {"WaitingPodOf257ZeroAmounts", "refused"},
      {"WaitingPodOfANamespaceOfOneMegabyte", "refused,unnamed"},
      {"WaitingPodOfAmountThatIsNone", "refused,unnamed"},
      {"WaitingPodOfAnnotationsBeyondTheLimit", "refused,unnamed"},
      {"WaitingPodOfNegativeAmount", "refused,unnamed"},
      {"WaitingPodOfResourceNameOfOneMegabyte", "refused,unnamed"},
      {"WaitingPodThatSelects4097Keys", "refused,unnamed"},
      {"WaitingPodsOf16000ResourceNamesOverTheSocket", "died,refused,unnamed"},
      {"WaitingPodsOf16000ResourceNames", "memory,refused,unnamed"},
  };
  return *rows;
}

// What is still wrong with a row; empty: nothing.
inline std::string OpenIn(const std::string& row) {
  const auto found = OpenRows().find(row);
  return found == OpenRows().end() ? "" : found->second;
}

}  // namespace loadline

#endif  // LOADLINE_TEST_HOSTILE_OPEN_ROWS_H_
