package verdict

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"hekla.sh/hekla/pkg/resources"
)

// declared reads the codes out of the source, so that none can be forgotten below.
func declared(t *testing.T) []Code {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "verdict.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var codes []Code
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			if name, ok := spec.Type.(*ast.Ident); ok && name.Name == "Code" {
				text, _ := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
				if spec.Names[0].Name != text {
					t.Errorf("code %s is spelt %q", spec.Names[0].Name, text)
				}
				codes = append(codes, Code(text))
			}
		}
		return true
	})
	return codes
}

func TestCodesAreOrderedAsTheyAreDeclared(t *testing.T) {
	codes := declared(t)
	if len(codes) < 14 {
		t.Fatalf("found %d codes", len(codes))
	}
	for i, a := range codes {
		for j, b := range codes {
			if a.Precedes(b) != (i < j) {
				t.Errorf("%s precedes %s: %t", a, b, a.Precedes(b))
			}
		}
	}
}

func TestEveryCodeHasASentenceOfItsOwn(t *testing.T) {
	seen := map[string]Code{}
	for _, code := range declared(t) {
		sentence := (&Verdict{Code: code, Subject: "research"}).Sentence()
		if sentence == "" || strings.Contains(sentence, "%!") || strings.Contains(sentence, "%s") {
			t.Errorf("%s says %q", code, sentence)
		}
		if other, ok := seen[sentence]; ok {
			t.Errorf("%s and %s both say %q", code, other, sentence)
		}
		seen[sentence] = code
	}
}

func TestASentenceSaysEveryNumber(t *testing.T) {
	short := []Shortage{{Resource: "cpu", Need: 4000, Have: 1500}, {Resource: "memory", Need: 2 << 30, Have: 1 << 30}}
	spared := []Spared{{Why: RuleNotMarked.Protection(), Pods: 1}, {Why: Protection{Kind: ByPlugin, Plugin: "gang"}, Pods: 2}, {Why: RuleGuaranteed.Protection(), Pods: 3}}
	for want, v := range map[string]*Verdict{
		"queue research does not exist": {Code: QueueNotFound, Subject: "research"},
		"queue research has no valid place in the tree; its parent \"lab\" does not exist": {
			Code: QueueInvalid, Subject: "research", Detail: "its parent \"lab\" does not exist"},
		"not all pods exist yet: 2 of 3":                {Code: NotEnoughTasks, Placed: 2, Wanted: 3},
		"not all pods of task worker exist yet: 0 of 4": {Code: NotEnoughPodsOfTask, Subject: "worker", Wanted: 4},
		"pods are held by scheduling gates: 1 of 2":     {Code: SchedulingGated, Placed: 1, Wanted: 2},
		"refused by quota; ask again tomorrow":          {Code: Refused, Subject: "quota", Detail: "ask again tomorrow"},
		"queue research is at its capability: cpu: needs 4, has 1500m, short by 2500m, memory: needs 2Gi, has 1Gi, short by 1Gi": {
			Code: OverCapability, Subject: "research", Shortages: short},
		"not enough room on the nodes":                                                                                   {Code: NotEnoughResources},
		"pods are leaving the nominated nodes":                                                                           {Code: Preempting},
		"pods are leaving the nominated nodes; 2 of 3 pods are gone":                                                     {Code: Preempting, Detail: "2 of 3 pods are gone"},
		"not enough room on the nodes; evicting other pods would not make room for it":                                   {Code: NotEnoughResources, Looked: true},
		"not enough room on the nodes; 1 pod cannot be evicted for it: 1 by rule P2 (not marked volcano.sh/preemptable)": {Code: NotEnoughResources, Looked: true, Spared: spared[:1]},
		"not enough room on the nodes; 6 pods cannot be evicted for it: 3 by rule Q2 (guaranteed to their queue), 2 by gang (it objects), 1 by rule P2 (not marked volcano.sh/preemptable)": {
			Code: NotEnoughResources, Looked: true, Spared: spared},
		"the API server refused to bind pod p-1, and the job is tried again later; a quota": {Code: BackingOff, Subject: "p-1", Detail: "a quota"},
		"the API server refused a step of the preemption for the job, which is tried again later; no such pod": {
			Code: BackingOff, Detail: "no such pod"},
		"2 of the 3 pods that must start together have a place; p-2 does not fit; 0/5 nodes are available: " +
			"3 Insufficient cpu (such as a), 1 node(s) were cordoned (such as d), 1 node(s) were not ready (such as e): " +
			"cpu: needs 4, has 1500m, short by 2500m": {Code: NotEnoughResources, Subject: "p-2", Placed: 2, Wanted: 3, Shortages: short[:1],
			Nodes: []NodeReason{{NodeState, "node(s) were not ready", 1, "e"}, {NodeRoom, "Insufficient cpu", 3, "a"}, {NodeState, "node(s) were cordoned", 1, "d"}}},
	} {
		if have := v.Sentence(); have != want {
			t.Errorf("have %q\nwant %q", have, want)
		}
	}
}

func TestVerdictsAreEqualIfTheySayTheSame(t *testing.T) {
	nodes := []NodeReason{{NodeRoom, "Insufficient cpu", 3, "a"}, {NodeState, "node(s) were not ready", 1, "e"}}
	swapped := []NodeReason{nodes[1], nodes[0]}
	spared := []Spared{{Why: RuleNotMarked.Protection(), Pods: 3}, {Why: RuleNotLowerJob.Protection(), Pods: 3}}
	sparedSwapped := []Spared{spared[1], spared[0]}
	for name, test := range map[string]struct {
		a, b *Verdict
		want bool
	}{
		"none and none":                       {nil, nil, true},
		"none and some":                       {nil, &Verdict{Code: OverShare}, false},
		"some and none":                       {&Verdict{Code: OverShare}, nil, false},
		"the same":                            {&Verdict{Code: OverShare, Subject: "q"}, &Verdict{Code: OverShare, Subject: "q"}, true},
		"another subject":                     {&Verdict{Code: OverShare, Subject: "q"}, &Verdict{Code: OverShare, Subject: "r"}, false},
		"another code":                        {&Verdict{Code: OverShare, Subject: "q"}, &Verdict{Code: OverCapability, Subject: "q"}, false},
		"another number":                      {&Verdict{Code: NotEnoughTasks, Wanted: 2}, &Verdict{Code: NotEnoughTasks, Wanted: 3}, false},
		"node reasons in other order":         {&Verdict{Code: NotEnoughResources, Nodes: nodes}, &Verdict{Code: NotEnoughResources, Nodes: swapped}, true},
		"a shortage beyond the first":         {&Verdict{Code: OverShare, Shortages: []Shortage{{"cpu", 2, 1}}}, &Verdict{Code: OverShare, Shortages: []Shortage{{"cpu", 2, 1}, {"pods", 2, 1}}}, false},
		"another word of who refuses":         {&Verdict{Code: Refused, Subject: "q", Detail: "a"}, &Verdict{Code: Refused, Subject: "q", Detail: "b"}, false},
		"who may not leave, in another order": {&Verdict{Code: OverShare, Looked: true, Spared: spared}, &Verdict{Code: OverShare, Looked: true, Spared: sparedSwapped}, true},
		"fewer who may not leave":             {&Verdict{Code: OverShare, Looked: true, Spared: spared}, &Verdict{Code: OverShare, Looked: true, Spared: spared[:1]}, false},
		"only one looked":                     {&Verdict{Code: OverShare, Looked: true}, &Verdict{Code: OverShare}, false},
		"two kinds of what could help":        {&Verdict{Code: OverShare, Help: HelpNode}, &Verdict{Code: OverShare, Help: HelpQueue}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if have := test.a.Equal(test.b); have != test.want {
				t.Errorf("equal: %t, want %t", have, test.want)
			}
		})
	}
	if nodes[0].Reason != "Insufficient cpu" || spared[0].Why.Kind != RuleNotMarked || sparedSwapped[0].Why.Kind != RuleNotLowerJob || swapped[0].Reason != "node(s) were not ready" {
		t.Error("rendering a sentence reorders the verdict")
	}
}

func TestAShortageOfWhatIsUnlimitedCanBeSaid(t *testing.T) {
	if have := (Shortage{Resource: "memory", Need: resources.Unlimited, Have: 1 << 30}).String(); !strings.Contains(have, "needs unlimited") {
		t.Errorf("have %q", have)
	}
}

func TestHeldTogetherTheFirstToBePutRightSpeaksAndHelpsAreJoined(t *testing.T) {
	full := &Verdict{Code: NotEnoughResources, Help: HelpNode, Shortages: []Shortage{{"cpu", 2, 1}}}
	share := &Verdict{Code: OverShare, Subject: "q", Help: HelpQueue}
	looked := &Verdict{Code: NotEnoughResources, Help: HelpPod, Looked: true, Spared: []Spared{{Why: RuleNotMarked.Protection(), Pods: 3}}}
	found := &Verdict{Code: OverShare, Subject: "q", Help: HelpQueue, Looked: true, Spared: []Spared{{Why: RuleNotLowerJob.Protection(), Pods: 1}}}
	inVain := &Verdict{Code: OverShare, Subject: "q", Help: HelpQueue, Looked: true}
	making := &Verdict{Code: Preempting, Help: HelpPod}
	for name, test := range map[string]struct{ a, b, want *Verdict }{
		"nothing and nothing":   {nil, nil, nil},
		"nothing and something": {nil, full, full},
		"something and nothing": {full, nil, full},
		"one that comes later":  {full, share, &Verdict{Code: OverShare, Subject: "q", Help: HelpNode | HelpQueue}},
		"one that comes first":  {share, full, &Verdict{Code: OverShare, Subject: "q", Help: HelpNode | HelpQueue}},
		"two of one code":       {full, &Verdict{Code: NotEnoughResources, Help: HelpPod}, &Verdict{Code: NotEnoughResources, Help: HelpNode | HelpPod, Shortages: full.Shortages}},
		"the other looked":      {share, looked, &Verdict{Code: OverShare, Subject: "q", Help: HelpQueue | HelpPod, Looked: true, Spared: looked.Spared}},
		"the loser looked":      {looked, share, &Verdict{Code: OverShare, Subject: "q", Help: HelpQueue | HelpPod, Looked: true, Spared: looked.Spared}},
		"a later one looked":    {full, looked, &Verdict{Code: NotEnoughResources, Help: HelpNode | HelpPod, Shortages: full.Shortages, Looked: true, Spared: looked.Spared}},
		"both looked": {looked, found, &Verdict{Code: OverShare, Subject: "q", Help: HelpQueue | HelpPod, Looked: true,
			Spared: addSpared(found.Spared, looked.Spared)}},
		"both looked, one in vain": {looked, inVain, &Verdict{Code: OverShare, Subject: "q", Help: HelpQueue | HelpPod, Looked: true,
			Spared: looked.Spared}},
		"pods are leaving the nominated nodes": {full, making, &Verdict{Code: Preempting, Help: HelpNode | HelpPod}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := gocmp.Diff(test.want, test.a.With(test.b)); diff != "" {
				t.Errorf("the two together differ (-want +got):\n%s", diff)
			}
		})
	}
	if full.Help != HelpNode || full.Looked || share.Help != HelpQueue || share.Looked {
		t.Error("holding two together changes one of them")
	}
}

func TestPodsThatWereSparedInTwoPlacesAreAddedUpByReason(t *testing.T) {
	here := []Spared{{Why: RuleNotMarked.Protection(), Pods: 2}, {Why: RuleNotLowerJob.Protection(), Pods: 1}}
	there := []Spared{{Why: RuleWithinShare.Protection(), Pods: 4}, {Why: RuleNotMarked.Protection(), Pods: 3}}
	want := []Spared{{Why: RuleNotMarked.Protection(), Pods: 5}, {Why: RuleNotLowerJob.Protection(), Pods: 1}, {Why: RuleWithinShare.Protection(), Pods: 4}}
	if diff := gocmp.Diff(want, addSpared(here, there)); diff != "" {
		t.Errorf("the sum differs (-want +got):\n%s", diff)
	}
	if here[0].Pods != 2 || len(there) != 2 {
		t.Error("adding up changes what is added")
	}
	if addSpared(nil, nil) != nil {
		t.Error("nothing and nothing is something")
	}
}

// Verdicts of gangs alike share their parts. Where only one part is another, they say something else.
func TestVerdictsThatShareTheirPartsAreEqual(t *testing.T) {
	v := Verdict{Code: NotEnoughResources, Placed: 1, Wanted: 2, Shortages: []Shortage{{"cpu", 2, 1}}, Nodes: []NodeReason{{Reason: "r", Nodes: 2}}}
	same := v
	if !v.Equal(&same) {
		t.Error("a copy differs")
	}
	for name, change := range map[string]func(w *Verdict){
		"placed":    func(w *Verdict) { w.Placed = 0 },
		"detail":    func(w *Verdict) { w.Detail = "more" },
		"shortages": func(w *Verdict) { w.Shortages = []Shortage{{"cpu", 3, 1}} },
		"nodes":     func(w *Verdict) { w.Nodes = []NodeReason{{Reason: "r", Nodes: 3}} },
	} {
		w := v
		if change(&w); v.Equal(&w) {
			t.Errorf("with other %s it is equal", name)
		}
	}
}

// stock is a stock of which so much is left.
type stock int64

func (s stock) Left() int64  { return int64(s) }
func (s stock) Source() Help { return HelpQueue }

func TestLacksOfTwoVerdictsAreJoined(t *testing.T) {
	const queue = HelpNode | HelpQueue | HelpOwnQueue
	lack := func(left int64) Lack { return Lack{Stock: stock(left), Needed: 5} }
	waits := func(lacks ...Lack) *Verdict {
		v := &Verdict{Code: OverShare, Help: HelpStock}
		copy(v.Lacks[:], lacks)
		return v
	}
	for _, test := range []struct {
		name string
		a, b *Verdict
		want Lacks
		help Help
		met  bool
	}{
		{"one has none", waits(), waits(lack(1)), Lacks{lack(1)}, HelpStock, false},
		{"both have the same", waits(lack(1)), waits(lack(1)), Lacks{lack(1)}, HelpStock, false},
		{"each has another, and one is met", waits(lack(1)), waits(lack(5)), Lacks{lack(1), lack(5)}, HelpStock, true},
		{"there are too many", waits(lack(1), lack(2)), waits(lack(3)), Lacks{lack(1), lack(2)}, HelpStock | queue, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			both := test.a.With(test.b)
			if both.Lacks != test.want || both.Help != test.help || both.Lacks.AnyIsMet() != test.met {
				t.Errorf("it waits for %+v and %b, which is met: %t", both.Lacks, both.Help, both.Lacks.AnyIsMet())
			}
		})
	}
}
