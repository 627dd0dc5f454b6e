#include "core/pack/item_classes.h"

#include <algorithm>
#include <map>
#include <queue>
#include <utility>

#include "core/pack/fill.h"

namespace loadline {
namespace {

// A class that could be split.
struct Box {
  ItemClass items;
  double loss = 0;    // what rounding up adds to the sizes of all that is left of the members
  size_t split = 0;   // the resource along which most is lost
  size_t number = 0;  // decides between equals
  bool operator<(const Box& other) const {
    return loss != other.loss ? loss < other.loss : number > other.number;
  }
};

class Splitter {
 public:
  Splitter(const PackingProblem& problem, const std::vector<int64_t>& left)
      : problem_(problem), left_(left), size_(problem) {}

  void Add(std::vector<int32_t> members) {
    Box box;
    box.items.members = std::move(members);
    Measure(&box);
    boxes_.push(std::move(box));
  }

  bool SplitOne(WorkBudget* budget) {
    if (boxes_.empty() || boxes_.top().loss <= 0) return false;
    Box box = boxes_.top();
    if (!budget->Spend(static_cast<int64_t>(1 + box.items.members.size() / 4))) return false;
    boxes_.pop();
    std::vector<int32_t>& members = box.items.members;
    const size_t r = box.split;
    std::sort(members.begin(), members.end(), [&](int32_t a, int32_t b) {
      const int64_t x = Request(a)[r], y = Request(b)[r];
      return x != y ? x < y : a < b;
    });
    const size_t at = BestCut(members, r);
    Add({members.begin() + static_cast<std::ptrdiff_t>(at), members.end()});
    members.resize(at);
    Add(std::move(members));
    return true;
  }

  std::vector<ItemClass> Take() {
    std::vector<ItemClass> classes;
    for (; !boxes_.empty(); boxes_.pop()) classes.push_back(boxes_.top().items);
    std::vector<double> sizes(problem_.items.size(), 0);
    for (ItemClass& entry : classes) {
      for (const int32_t item : entry.members) sizes[static_cast<size_t>(item)] = size_.Of(Request(item));
      std::sort(entry.members.begin(), entry.members.end(), [&](int32_t a, int32_t b) {
        const double x = sizes[static_cast<size_t>(a)], y = sizes[static_cast<size_t>(b)];
        return x != y ? x > y : a < b;
      });
    }
    std::sort(classes.begin(), classes.end(), [](const ItemClass& a, const ItemClass& b) {
      return a.request != b.request ? a.request > b.request : a.members < b.members;
    });
    return classes;
  }

 private:
  const std::vector<int64_t>& Request(int32_t item) const {
    return problem_.items[static_cast<size_t>(item)].request;
  }
  double Left(int32_t item) const { return static_cast<double>(left_[static_cast<size_t>(item)]); }

  void Measure(Box* box) {
    ItemClass& items = box->items;
    box->number = ++boxes_made_;
    items.request = items.least = Request(items.members.front());
    for (const int32_t item : items.members) {
      for (size_t r = 0; r < items.request.size(); ++r) {
        items.request[r] = std::max(items.request[r], Request(item)[r]);
        items.least[r] = std::min(items.least[r], Request(item)[r]);
      }
    }
    double most = 0;
    for (size_t r = 0; r < items.request.size(); ++r) {
      if (items.request[r] == items.least[r]) continue;
      double loss = 0;
      for (const int32_t item : items.members) {
        loss += Left(item) * static_cast<double>(items.request[r] - Request(item)[r]) * size_.scale(r);
      }
      box->loss += loss;
      if (loss > most) {
        most = loss;
        box->split = r;
      }
    }
    if (!Fits(items)) box->loss *= 1'000;
  }

  // Returns whether each type that takes the members takes one of the largest requests as well.
  bool Fits(const ItemClass& items) const {
    const size_t first = static_cast<size_t>(items.members.front());
    return std::all_of(problem_.types.begin(), problem_.types.end(), [&](const PackingType& type) {
      return type.most[first] == 0 || CopiesThatFit(type.free, Request(items.members.front())) == 0 ||
             CopiesThatFit(type.free, items.request) > 0;
    });
  }

  // Returns where to cut members that are sorted by a resource: those before the cut are rounded up by less
  // then.
  size_t BestCut(const std::vector<int32_t>& members, size_t r) const {
    const int64_t top = Request(members.back())[r];
    double before = 0, most = -1;
    size_t best = 1;
    // Off the ends where possible, so that few cuts suffice.
    const size_t margin = members.size() / 8;
    for (size_t i = 1; i < members.size(); ++i) {
      before += Left(members[i - 1]);
      const int64_t below = Request(members[i - 1])[r];
      if (below == Request(members[i])[r]) continue;
      double gain = before * static_cast<double>(top - below);
      if (i < margin || i > members.size() - margin) gain *= 1e-6;
      if (gain <= most) continue;
      most = gain;
      best = i;
    }
    return best;
  }

  const PackingProblem& problem_;
  const std::vector<int64_t>& left_;
  RequestSize size_;
  std::priority_queue<Box> boxes_;
  size_t boxes_made_ = 0;

 public:
  size_t size() const { return boxes_.size(); }
};

}  // namespace

RequestSize::RequestSize(const PackingProblem& problem) {
  for (const PackingType& type : problem.types) {
    scale_.resize(type.free.size(), 0);
    for (size_t r = 0; r < type.free.size(); ++r) {
      scale_[r] = std::max(scale_[r], static_cast<double>(type.free[r]));
    }
  }
  for (double& scale : scale_) scale = scale > 0 ? 1 / scale : 0;
}

double RequestSize::Of(const std::vector<int64_t>& request) const {
  double size = 0;
  for (size_t r = 0; r < scale_.size(); ++r) size += static_cast<double>(request[r]) * scale_[r];
  return size;
}

std::vector<ItemClass> ClassesOf(const PackingProblem& problem, const std::vector<int64_t>& left, size_t most,
                                 WorkBudget* budget) {
  // By the types that take them, and whether something else than room limits how many a node takes.
  std::map<std::vector<char>, std::vector<int32_t>> alike;
  for (size_t item = 0; item < problem.items.size(); ++item) {
    if (left[item] == 0) continue;
    if (!budget->Spend(static_cast<int64_t>(1 + problem.types.size() / 8))) break;
    std::vector<char> key;
    for (const PackingType& type : problem.types) {
      const int64_t room = CopiesThatFit(type.free, problem.items[item].request);
      const int64_t takes = std::min(room, type.most[item]);
      key.push_back(takes == 0 ? 'n' : takes < std::min(room, left[item]) ? 'l' : 'y');
    }
    if (!alike.contains(key) && alike.size() == kMostItemClasses) continue;
    alike[std::move(key)].push_back(static_cast<int32_t>(item));
  }
  Splitter splitter(problem, left);
  for (auto& [key, members] : alike) splitter.Add(std::move(members));
  while (splitter.size() < most && splitter.SplitOne(budget)) {
  }
  return splitter.Take();
}

}  // namespace loadline
