package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/ranking"
	"loadline.dev/shim/report"
)

// billAnswer is the answer of `bill` as data. Amounts are US dollars per hour.
type billAnswer struct {
	Now        float64           `json:"now"`
	Bound      *float64          `json:"bound"` // null: more than a tenth of Now is an estimate
	Gap        *float64          `json:"gap"`
	Reachable  float64           `json:"reachable"`
	Fixed      float64           `json:"fixed"`
	Prices     priceSources      `json:"prices"`
	Groups     []billPart        `json:"groups"`
	Namespaces []billPart        `json:"namespaces"`
	Moves      []consolidateMove `json:"moves"`
	MovesTotal int64             `json:"movesTotal"`
	Stay       []billStay        `json:"stay"`
	// OtherNodes are not counted: the first 256 that are no machines.
	OtherNodes []otherNode `json:"otherNodes,omitempty"`
	// Brake is what keeps moves from beginning now: none is proposed.
	Brake string   `json:"brake,omitempty"`
	Notes []string `json:"notes"`
}

// billPart is what a group or a namespace costs; USD is null where the price is not known.
type billPart struct {
	Name  string   `json:"name"`
	USD   *float64 `json:"usd"`
	Nodes int64    `json:"nodes,omitempty"`
	// Price is the price of one node with its source.
	Price string `json:"price,omitempty"`
}

// billStay is a reason for which nodes stay.
type billStay struct {
	Reason        string  `json:"reason"`
	Nodes         int64   `json:"nodes"`
	USD           float64 `json:"usd"`
	WhatWouldHelp string  `json:"whatWouldHelp"`
}

// consolidateAnswer is the answer of `consolidate` as data.
type consolidateAnswer struct {
	Bill struct {
		Now       float64  `json:"now"`
		Bound     *float64 `json:"bound"`
		Reachable float64  `json:"reachable"`
	} `json:"bill"`
	Prices     priceSources      `json:"prices"`
	Moves      []consolidateMove `json:"moves"`
	MovesTotal int64             `json:"movesTotal"`
	Keep       []consolidateKeep `json:"keep"`
	// Brake is what keeps moves from beginning now: none is proposed.
	Brake string   `json:"brake,omitempty"`
	Notes []string `json:"notes"`
}

// consolidateMove is complete in itself once those before it are done. To is a node, or GROUP#N.
type consolidateMove struct {
	Remove    []string         `json:"remove"`
	Add       []consolidateAdd `json:"add"`
	Pods      []consolidatePod `json:"pods"`
	Saves     float64          `json:"saves"`
	Disrupted int64            `json:"disrupted"`
	Turns     int64            `json:"turns"`
	Wave      int64            `json:"wave"`
}

type consolidateAdd struct {
	Group string `json:"group"`
	Count int32  `json:"count"`
}

type consolidatePod struct {
	Pod  string `json:"pod"`
	From string `json:"from"`
	To   string `json:"to"`
}

type consolidateKeep struct {
	Node          string  `json:"node"`
	NodeGroup     string  `json:"nodeGroup"`
	Reason        string  `json:"reason"`
	BlockingPod   string  `json:"blockingPod,omitempty"`
	PodReason     string  `json:"podReason,omitempty"`
	BudgetRefusal string  `json:"budgetRefusal,omitempty"`
	USD           float64 `json:"usd"`
	Worth         float64 `json:"worth"`
	WhatWouldHelp string  `json:"whatWouldHelp"`
}

// firstMoves is how many moves the tables of `bill` show.
const firstMoves = 5

func newConsolidateMove(m *loadlinev1.ConsolidationMove) consolidateMove {
	move := consolidateMove{Remove: m.GetRemove(), Add: []consolidateAdd{}, Pods: []consolidatePod{},
		Saves: m.GetSaves(), Disrupted: m.GetDisrupted(), Turns: m.GetTurns(), Wave: m.GetWave()}
	for _, add := range m.GetAdd() {
		move.Add = append(move.Add, consolidateAdd{add.GetNodeGroup(), add.GetNodes()})
	}
	for _, pod := range m.GetPods() {
		move.Pods = append(move.Pods, consolidatePod{podOf(pod.GetNamespace(), pod.GetName()), pod.GetFrom(), pod.GetTo()})
	}
	return move
}

func (b *billPlan) moves(most int) []consolidateMove {
	moves := []consolidateMove{}
	for _, m := range b.GetMoves()[:min(most, len(b.GetMoves()))] {
		moves = append(moves, newConsolidateMove(m))
	}
	return moves
}

func (b *billPlan) advice() map[string]string {
	advice := map[string]string{}
	for _, reason := range b.GetReasons() {
		advice[reason.GetReason()] = b.adviceOf(reason)
	}
	return advice
}

// adviceOf returns what would help nodes that stay for a reason. With a brake, no moves are asked for, which the engine
// takes for a setting.
func (b *billPlan) adviceOf(reason *loadlinev1.ConsolidationReason) string {
	if b.brake != "" && reason.GetReason() == "Off" {
		return "No move begins now: " + b.brake + "."
	}
	return reason.GetAdvice()
}

// gap is what is paid above the bound, as a share of it; nil: no bound is named.
func (b *billPlan) gap() *float64 {
	bill := b.GetBill()
	if bill.Bound == nil {
		return nil
	}
	gap := 0.0
	if bill.GetBound() > 0 {
		gap = bill.GetNow()/bill.GetBound() - 1
	}
	return &gap
}

func (b *billPlan) billData() billAnswer {
	bill := b.GetBill()
	out := billAnswer{Now: bill.GetNow(), Bound: bill.Bound, Gap: b.gap(), Reachable: bill.GetReachable(),
		Fixed: bill.GetFixed(), Prices: newPriceSources(b.GetPriceSources()), Groups: []billPart{},
		Namespaces: []billPart{}, Moves: b.moves(len(b.GetMoves())), MovesTotal: b.GetMovesTotal(), Stay: []billStay{},
		OtherNodes: otherNodesOf(b.GetOtherNodes()), Brake: b.brake, Notes: append([]string{}, b.notes...)}
	for _, group := range b.GetGroups() {
		out.Groups = append(out.Groups, billPart{group.GetNodeGroup(), group.UsdPerHour, group.GetNodes(),
			ranking.PriceText(group.GetNodePrice())})
	}
	for _, namespace := range b.GetNamespaces() {
		usd := namespace.GetUsdPerHour()
		out.Namespaces = append(out.Namespaces, billPart{Name: namespace.GetName(), USD: &usd})
	}
	for _, reason := range b.GetReasons() {
		out.Stay = append(out.Stay, billStay{reason.GetReason(), reason.GetNodes(), reason.GetUsdPerHour(),
			b.adviceOf(reason)})
	}
	return out
}

func (b *billPlan) consolidateData() consolidateAnswer {
	out := consolidateAnswer{Prices: newPriceSources(b.GetPriceSources()), Moves: b.moves(len(b.GetMoves())),
		MovesTotal: b.GetMovesTotal(), Keep: []consolidateKeep{}, Brake: b.brake, Notes: append([]string{}, b.notes...)}
	out.Bill.Now, out.Bill.Bound, out.Bill.Reachable = b.GetBill().GetNow(), b.GetBill().Bound,
		b.GetBill().GetReachable()
	advice := b.advice()
	for _, k := range b.GetKeep() {
		out.Keep = append(out.Keep, newConsolidateKeep(k, advice))
	}
	return out
}

func newConsolidateKeep(k *loadlinev1.ConsolidationKeep, advice map[string]string) consolidateKeep {
	return consolidateKeep{Node: k.GetNode(), NodeGroup: k.GetNodeGroup(), Reason: k.GetReason(),
		BlockingPod: podOf(k.GetPodNamespace(), k.GetPodName()), PodReason: k.GetPodReason(),
		BudgetRefusal: k.GetBudgetRefusal(), USD: k.GetUsdPerHour(), Worth: k.GetWorth(),
		WhatWouldHelp: cmp.Or(k.GetAdvice(), advice[k.GetReason()])}
}

// noBound is said in place of one.
const noBound = "what it must cost at least is not named, as more than a tenth of that is estimated"

func usd(amount float64) string { return fmt.Sprintf("%.3f", amount) }

// machines is how many nodes the bill counts, or would count with a price.
func (b *billPlan) machines() (nodes int64) {
	for _, group := range b.GetGroups() {
		nodes += group.GetNodes()
	}
	return nodes + b.GetBill().GetUnpricedNodes()
}

// verdict is the bill in a line.
func (b *billPlan) verdict() string {
	bill := b.GetBill()
	text := fmt.Sprintf("%s USD/h is paid; ", usd(bill.GetNow()))
	if bill.Bound != nil {
		text += "no arrangement of these pods costs less than " + usd(bill.GetBound())
	} else {
		text += noBound
	}
	if b.machines() == 0 {
		text = "no machine is known that is paid for"
	}
	if b.brake != "" {
		return text + "; no move begins now: " + b.brake
	}
	if b.GetMovesTotal() == 0 {
		return text + "; no move pays"
	}
	verbs := "%s; %s reach %s and save %s a month"
	if b.GetMovesTotal() == 1 {
		verbs = "%s; %s reaches %s and saves %s a month"
	}
	return fmt.Sprintf(verbs, text, plural(int(b.GetMovesTotal()), "move"), usd(bill.GetReachable()),
		fmt.Sprintf("%.0f USD", (bill.GetNow()-bill.GetReachable())*730))
}

// partOf says what becomes of a node, as a sentence; empty: nothing is known of it.
func (b *billPlan) partOf(node string) string {
	for i, m := range b.GetMoves() {
		if slices.Contains(m.GetRemove(), node) {
			goes, comes := moveTexts(newConsolidateMove(m))
			if comes == "-" {
				comes = "no node"
			}
			return fmt.Sprintf("Consolidation: it goes by move %d, which takes %s, brings %s, moves %s and saves %s USD/h.",
				i+1, goes, comes, plural(int(m.GetDisrupted()), "pod"), usd(m.GetSaves()))
		}
	}
	for _, k := range b.GetKeep() {
		if k.GetNode() == node {
			reason := reasonText(k.GetReason(), k.GetPodReason(), k.GetBudgetRefusal())
			return strings.TrimSpace(fmt.Sprintf("Consolidation: it stays, %s; it costs %s USD/h, and the pods that "+
				"would leave it are worth %s. %s", reason, usd(k.GetUsdPerHour()), usd(k.GetWorth()),
				cmp.Or(k.GetAdvice(), b.advice()[k.GetReason()])))
		}
	}
	return ""
}

// moveTexts returns the nodes that a move removes and the nodes that it adds, in words.
func moveTexts(m consolidateMove) (goes, comes string) {
	var add []string
	for _, entry := range m.Add {
		add = append(add, fmt.Sprintf("%d %s", entry.Count, entry.Group))
	}
	goes = strings.Join(m.Remove, " ")
	if len(m.Remove) > 4 {
		goes = fmt.Sprintf("%s and %d more", strings.Join(m.Remove[:3], " "), len(m.Remove)-3)
	}
	return goes, cmp.Or(strings.Join(add, ", "), "-")
}

// moveColumns show moves, each in words.
var moveColumns = []column{{header: "WAVE", path: "wave", right: true}, {header: "GOES", text: goesText},
	{header: "COMES", text: comesText}, {header: "USD/H", text: usdOf("saves"), right: true},
	{header: "PODS", path: "disrupted", right: true}}

func goesText(r row) string {
	names, _ := r["remove"].([]any)
	m := consolidateMove{}
	for _, name := range names {
		m.Remove = append(m.Remove, cellOf(name))
	}
	goes, _ := moveTexts(m)
	return goes
}

func comesText(r row) string {
	groups, _ := r["add"].([]any)
	m := consolidateMove{}
	for _, group := range groups {
		if fields, ok := group.(map[string]any); ok {
			m.Add = append(m.Add, consolidateAdd{row(fields).str("group"), int32(row(fields).num("count"))})
		}
	}
	_, comes := moveTexts(m)
	return comes
}

// usdOf shows an amount of money; "?" where it is not known.
func usdOf(key string) func(row) string {
	return func(r row) string {
		if r[key] == nil {
			return "?"
		}
		return usd(r.num(key))
	}
}

// dearestFirst orders parts by what they cost.
func dearestFirst(x, y row) int { return cmp.Compare(y.num("usd"), x.num("usd")) }

// dearest are the parts that cost most.
func dearest(parts []billPart, most int) []billPart {
	sorted := slices.Clone(parts)
	slices.SortStableFunc(sorted, func(x, y billPart) int { return cmp.Compare(value(y.USD), value(x.USD)) })
	return sorted[:min(most, len(sorted))]
}

func value(usd *float64) float64 {
	if usd == nil {
		return -1
	}
	return *usd
}

const mostParts = 15

// billTables show a bill, consolidateTables a plan of moves.
var (
	billTables = []table{
		{rows: "moves", kind: "node", name: "remove[*]", most: firstMoves, columns: moveColumns},
		{rows: "groups", apart: true, most: mostParts, order: dearestFirst, columns: []column{
			{header: "NODE GROUP", path: "name"}, {header: "NODES", path: "nodes", right: true},
			{header: "USD/H", text: usdOf("usd"), right: true}, {header: "PRICE", path: "price", wide: true}}},
		{rows: "namespaces", apart: true, most: mostParts, order: dearestFirst, columns: []column{
			{header: "NAMESPACE", path: "name"}, {header: "USD/H AT SHADOW PRICES", text: usdOf("usd"), right: true}}},
		{rows: "stay", apart: true, columns: []column{{header: "STAY", path: "nodes", right: true},
			{header: "REASON", path: "reason"}, {header: "USD/H", text: usdOf("usd"), right: true},
			{header: "WHAT WOULD HELP", path: "whatWouldHelp"}}},
	}
	consolidateTables = []table{
		{rows: "moves", kind: "node", name: "remove[*]", columns: moveColumns},
		{rows: "keep", apart: true, columns: []column{{header: "STAYS", path: "node"},
			{header: "GROUP", path: "nodeGroup", wide: true}, {header: "REASON", text: keepReason},
			{header: "POD", text: func(r row) string { return r.str("blockingPod") }},
			{header: "USD/H", text: usdOf("usd"), right: true}, {header: "WORTH", text: usdOf("worth"), right: true},
			{header: "WHAT WOULD HELP", path: "whatWouldHelp", wide: true}}},
	}
)

func (b *billPlan) billForms() answer {
	return answer{data: b.billData(), verdict: b.verdict() + ".", tables: billTables, lines: b.notes,
		leftOut: &b.leftOut, page: b.page}
}

func (b *billPlan) consolidateForms() answer {
	return answer{data: b.consolidateData(), title: "Moves that save money", verdict: b.verdict() + ".",
		tables: consolidateTables, lines: b.notes, leftOut: &b.leftOut}
}

func (b *billPlan) page(w io.Writer) error {
	data := b.billData()
	page := report.Bill{Title: "Bill", Verdict: b.verdict() + ".", Lines: b.notes, Now: data.Now, Bound: data.Bound,
		Reachable: data.Reachable, Fixed: data.Fixed}
	for _, part := range dearest(data.Groups, 30) {
		if part.USD != nil {
			page.Groups = append(page.Groups, report.BillPart{Name: fmt.Sprintf("%s (%s)", part.Name,
				plural(int(part.Nodes), "node")), USD: *part.USD})
		}
	}
	for _, part := range dearest(data.Namespaces, 30) {
		page.Namespaces = append(page.Namespaces, report.BillPart{Name: part.Name, USD: *part.USD})
	}
	page.Moves.Header = []string{"wave", "goes", "comes", "USD/h saved", "pods"}
	for _, m := range b.moves(50) {
		goes, comes := moveTexts(m)
		page.Moves.Rows = append(page.Moves.Rows, []string{fmt.Sprint(m.Wave), goes, comes, usd(m.Saves),
			fmt.Sprint(m.Disrupted)})
	}
	page.Stay.Header = []string{"nodes that stay", "reason", "USD/h", "what would help"}
	for _, reason := range data.Stay {
		page.Stay.Rows = append(page.Stay.Rows, []string{fmt.Sprint(reason.Nodes), reason.Reason, usd(reason.USD),
			reason.WhatWouldHelp})
	}
	return page.Write(w)
}
