package ask

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"k8s.io/cli-runtime/pkg/printers"

	"hekla.sh/hekla/internal/answers/api"
	"hekla.sh/hekla/internal/controllers/job/lifecycle"
	"hekla.sh/hekla/internal/explain"
	"hekla.sh/hekla/internal/explain/mistakes"
	"hekla.sh/hekla/internal/explain/queued"
	"hekla.sh/hekla/internal/journal"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// The longest lists in a text; -o json has all.
const maxNodeLines, maxAheadLines, maxStoryLines = 5, 5, 8

// printer writes answers for people.
type printer struct{ program, namespace, name string }

func (p *printer) job(w io.Writer, a *api.Job) {
	c := &a.Cause
	name := "Job " + p.namespace + "/" + p.name
	if a.Queued != nil {
		name = "Workload " + p.namespace + "/" + p.name
	}
	out := screenOf(w)
	switch {
	case !c.Waits:
		out.headline(w, good, name+" does not wait: "+c.Code)
	case c.Never:
		out.headline(w, bad, name+" cannot start as things are: "+c.Code)
	default:
		out.headline(w, waits, name+" waits: "+c.Code)
	}
	out.sentence(w, cmp.Or(c.Summary, c.Message))
	p.table(w, func(w io.Writer) {
		switch {
		case a.ETA == nil:
		case a.ETA.Never:
			block(w, "Starts", "never, as things are") // the cause says why
		default:
			block(w, "Starts", a.ETA.Message)
		}
		p.cause(w, c)
		for i := range a.Also {
			block(w, "Also", fmt.Sprintf("%s: %s", a.Also[i].Code, a.Also[i].Message))
		}
		if c.Code != lifecycle.ReasonWaitsForWorkload { // the cause says it
			p.mistakes(w, a.Mistakes)
		}
		if a.Queued != nil && c.Code != explain.WorkloadsOff { // no quota is looked at
			p.queued(w, a.Queued)
		}
		for _, b := range a.Job.Bounds {
			kept := ""
			if b.Kept != "" {
				kept = fmt.Sprintf(", %s more are kept for admitted jobs", b.Kept)
			}
			block(w, "Limit", fmt.Sprintf("queue %s: %s of %s is %s, it holds %s%s, the job needs %s: %s too much", b.Queue, b.Limit, b.Resource, b.May, b.Holds, kept, b.Needed, b.Exceeds))
		}
		p.place(w, a)
		p.holders(w, "Held", a.Holders)
		for _, found := range a.Job.Candidates {
			p.candidates(w, &found)
		}
		if len(a.Job.Candidates) == 0 {
			var lines []string
			for _, protected := range c.Protected {
				lines = append(lines, fmt.Sprintf("%d protected by %s", protected.Pods, protected.Rule))
			}
			block(w, "Evictions", lines...)
		}
		if plan := a.Job.Plan; plan != nil {
			block(w, "Plan", fmt.Sprintf("%s by %s: %d of %d pods have left, the others until %s", plan.ID, plan.Action, plan.Left, plan.Evictions, plan.Deadline.Format("15:04:05")))
		}
		for _, b := range a.Job.BackOffs {
			block(w, "Not before", b.Until.Format("15:04:05")+": "+b.Reason)
		}
		if a.Returns != "" && slices.ContainsFunc(a.Story, func(e journal.Entry) bool { return e.Kind == journal.Evicted && e.Job == a.Job.Job }) {
			block(w, "Comes back", a.Returns)
		}
		if len(a.Proposals) == 0 && a.NoProposals != "" && c.Waits && a.Queued == nil {
			block(w, "Helps", "not looked for: "+a.NoProposals)
		}
		for i, proposal := range a.Proposals {
			block(w, []string{"Helps", ""}[min(i, 1)], proposal.Message+on(proposal.Nodes))
		}
		if len(a.Proposals) > 0 && a.Proposals[0].Assumes != "" {
			block(w, "", "if "+a.Proposals[0].Assumes)
		}
		p.story(w, a.Story)
	})
	if a.Queued != nil {
		_, p.name, _ = strings.Cut(a.Queued.Workload, "/") // not that of its job
		fmt.Fprintf(w, "Next: %s\n", p.nextOfWorkload(c, a.Queued))
		return
	}
	fmt.Fprintf(w, "Next: %s\n", p.next(c, a.Job.Queue))
}

// mistakes writes the names that nothing in the cluster has.
func (p *printer) mistakes(w io.Writer, found []mistakes.Mistake) {
	var lines []string
	for i := range found {
		lines = append(lines, found[i].Message)
	}
	block(w, "Unknown", lines...)
}

// queued writes how a Workload stands in its ClusterQueue, what it lacks, and who has that.
func (p *printer) queued(w io.Writer, q *queued.Workload) {
	if q.Place > 0 {
		line := fmt.Sprintf("%s: place %d of %d", q.ClusterQueue, q.Place, q.Of)
		if len(q.Ahead) > 0 {
			line += ", after " + queued.Names(q.Ahead, maxAheadLines)
		}
		block(w, "Queue", line)
	}
	var short []string
	for i := range q.Short {
		short = append(short, q.Short[i].Sentence())
	}
	block(w, "Short", short...)
	if len(q.Short) > 0 {
		line := "no Workload that its ClusterQueue may evict holds such quota"
		if q.CandidateCount > 0 {
			line = fmt.Sprintf("%d Workload(s) hold such quota that its ClusterQueue may evict: %s", q.CandidateCount, queued.Names(q.Candidates, maxAheadLines))
		}
		block(w, "Evictions", line)
	}
	if len(q.Spared) > 0 {
		block(w, "Spared", "by rule C20, since it was evicted for them: "+queued.Names(q.Spared, maxAheadLines))
	}
	if len(q.WaitsFor) > 0 {
		block(w, "Waits for", queued.Names(q.WaitsFor, maxAheadLines))
	}
	for _, set := range q.PodSets {
		var nodes []string
		for _, n := range set.Nodes {
			nodes = append(nodes, fmt.Sprintf("%d on %s", n.Count, n.Node))
		}
		block(w, "Holds", fmt.Sprintf("pod set %s: %d pod(s) of flavor %s: %s", set.Name, set.Count, strings.Join(set.Flavors, ", "), strings.Join(nodes, ", ")))
	}
}

func on(nodes []string) string {
	if len(nodes) == 0 {
		return ""
	}
	return " (on " + strings.Join(nodes, ", ") + ")"
}

// cause writes the details of a cause.
func (p *printer) cause(w io.Writer, c *explain.Cause) {
	if c.Where != "" {
		block(w, "Where", c.Where)
	}
	block(w, "Short", aligned(c.Short)...)
	var nodes []string
	for _, r := range append(c.Nodes[:min(len(c.Nodes), maxNodeLines):min(len(c.Nodes), maxNodeLines)], c.Promised...) {
		line := fmt.Sprintf("%d: %s (such as %s)", r.Nodes, r.Reason, r.Example)
		if r.Detail != "" {
			line = fmt.Sprintf("%d: %s (such as %s: %s)", r.Nodes, r.Reason, r.Example, r.Detail)
		}
		nodes = append(nodes, line)
	}
	if len(nodes) > 0 {
		nodes = append(nodes, fmt.Sprintf("%d could hold such a pod if they were empty", c.Suitable))
	}
	block(w, "Nodes", nodes...)
}

func (p *printer) place(w io.Writer, a *api.Job) {
	o := a.Job.Order
	if o == nil {
		return
	}
	lines := []string{fmt.Sprintf("%s: place %d of %d; the queue is %d of %d", a.Job.Queue, o.Place, o.Of, o.QueuePlace, o.Queues)}
	for _, before := range a.Ahead[:min(len(a.Ahead), maxAheadLines)] {
		line := "after " + before.Job + ": " + before.Because
		if before.Reason != "" {
			line += "; it waits itself: " + before.Reason
		}
		lines = append(lines, line)
	}
	block(w, "Queue", lines...)
}

func (p *printer) candidates(w io.Writer, c *explain.Candidates) {
	lines := []string{fmt.Sprintf("%s, %s: %d pods may leave, which is not enough", c.Action, c.Scope, c.MayLeave)}
	if c.MayLeave == 0 {
		lines[0] = fmt.Sprintf("%s, %s: no pod may leave", c.Action, c.Scope)
	}
	if c.NotLookedAt {
		lines[0] = fmt.Sprintf("%s, %s: too many pods to look at between two cycles", c.Action, c.Scope)
	}
	for _, protected := range c.Protected {
		lines = append(lines, fmt.Sprintf("%d protected by %s", protected.Pods, protected.Rule))
	}
	block(w, "Evictions", lines...)
}

// saying adds a message, if there is one.
func saying(what, message string) string {
	if message == "" {
		return what
	}
	return what + ": " + message
}

// madeFor ends the name of a PodGroup that a controller made: the UID of the object that users know.
var madeFor = regexp.MustCompile(`-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// jobOf returns what users call the job of a PodGroup. That of a lone pod has no name of its own, and is asked about by
// that of its PodGroup.
func jobOf(group string) string {
	job := madeFor.ReplaceAllString(group, "")
	if strings.HasSuffix("/"+job+"-", "/"+schedulingv1beta1.PodGroupNamePrefix) {
		return group
	}
	return job
}

// story writes the latest decisions.
func (p *printer) story(w io.Writer, entries []journal.Entry) {
	var told tale
	for _, e := range entries {
		text := string(e.Kind)
		switch e.Kind {
		case journal.Bound:
			told.addPod(e.Time, "was bound|were bound", "", e.Pod+" to "+e.Node)
			continue
		case journal.Evicted:
			told.addPod(e.Time, "was evicted|were evicted", fmt.Sprintf("for %s by rule %s (%s): %s", cmp.Or(jobOf(e.For), "no job"), e.Rule, e.Action, e.Message), e.Pod+" from "+e.Node)
			continue
		case journal.VerdictChanged:
			text = "waits: " + e.Reason
		case journal.NothingInTheWay:
			text = "nothing is in its way any more"
		case journal.Admitted:
			text = "was admitted"
		case journal.SentBack:
			if e.For == p.namespace+"/workload/"+p.name {
				text = saying("Workload "+strings.Replace(e.Job, "/workload/", "/", 1)+" was evicted for it", e.Message)
			} else {
				text = saying("was sent back to wait for admission", e.Message)
			}
		case journal.PlanBegun:
			text = "plan " + e.Plan + " came into force " + e.Message
		case journal.PlanCancelled:
			text = "plan " + e.Plan + " was cancelled " + e.Message
		case journal.PlanFulfilled:
			text = "plan " + e.Plan + " was fulfilled " + e.Message
		}
		told.add(e.Time, strings.TrimSpace(text))
	}
	lines := told.lines()
	block(w, "Story", lines[max(len(lines)-maxStoryLines, 0):]...)
}

func (p *printer) pod(w io.Writer, a *api.Pod) {
	fmt.Fprintf(w, "Pod %s is %s%s\n", a.Pod.Pod, a.Status, at(a.Node))
	if a.Cause != nil {
		fmt.Fprintf(w, "  %s: %s\n", a.Cause.Code, printers.EscapeTerminal(a.Cause.Message))
	}
	if a.Reason != "" && (a.Cause == nil || a.Cause.Code != a.Reason) { // autoscalers read the condition
		fmt.Fprintf(w, "  Its condition PodScheduled says %s: %s\n", a.Reason, printers.EscapeTerminal(a.Message))
	}
	p.table(w, func(w io.Writer) {
		if a.LeavesFor != "" {
			block(w, "Leaves for", jobOf(a.LeavesFor)+" (plan "+a.Plan+")")
		}
		if a.Refused != "" {
			block(w, "Refused", a.Refused)
		}
		for _, r := range a.Nodes {
			var lines []string
			for _, n := range r.Nodes[:min(len(r.Nodes), maxNodeLines)] {
				lines = append(lines, fmt.Sprintf("%d: %s (such as %s)", n.Nodes, n.Reason, n.Example))
			}
			block(w, "Nodes", lines...)
		}
		p.story(w, a.Story)
	})
	switch {
	case a.Pod.Job != "":
		_, job, _ := strings.Cut(jobOf(a.Pod.Job), "/")
		fmt.Fprintf(w, "Next: %s why job %s -n %s\n", p.program, job, p.namespace)
	default:
		fmt.Fprintf(w, "Next: kubectl -n %s describe pod %s\n", p.namespace, p.name)
	}
}

func at(node string) string {
	if node == "" {
		return ""
	}
	return " on " + node
}

func (p *printer) queue(w io.Writer, a *api.Queue) {
	q := &a.Queue
	fmt.Fprintf(w, "Queue %s is %s: %d jobs pending, %d admitted, %d running\n", q.Queue, q.State, q.Jobs.Pending, q.Jobs.Admitted, q.Jobs.Running)
	if q.Problem != "" {
		fmt.Fprintf(w, "  %s\n", printers.EscapeTerminal(q.Problem))
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	names := map[string]bool{}
	for _, amounts := range []explain.Amounts{q.Guarantee, q.Deserved, q.Capability, q.Holds, q.Requests} {
		for name := range amounts {
			names[name] = true
		}
	}
	_, _ = fmt.Fprintln(t, "  Resource\tGuarantee\tDeserved\tCapability\tHolds\tRequests\tKept for admitted")
	for _, name := range slices.Sorted(maps.Keys(names)) {
		_, _ = fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\t%s\t%s\n", name, cmp.Or(q.Guarantee[name], "-"), cmp.Or(q.Deserved[name], "-"), cmp.Or(q.Capability[name], "-"),
			cmp.Or(q.Holds[name], "0"), cmp.Or(q.Requests[name], "0"), cmp.Or(q.KeptForAdmitted[name], "0"))
	}
	_ = t.Flush()
	p.table(w, func(w io.Writer) {
		if q.Share != nil {
			block(w, "Share", fmt.Sprintf("%.2f of what it deserves, in its most used resource", *q.Share))
		}
		block(w, "Settings", fmt.Sprintf("weight %d, priority %d, reclaimable %t", q.Weight, q.Priority, q.Reclaimable))
		if q.Parent != "" {
			block(w, "Parent", q.Parent)
		}
		p.relations(w, "Takes from", q.TakesFrom)
		p.relations(w, "Gives to", q.GivesTo)
		block(w, "Waiting", q.Jobs.Waiting[:min(len(q.Jobs.Waiting), maxAheadLines)]...)
		p.story(w, a.Story)
	})
	switch {
	case len(q.Jobs.Waiting) > 0:
		namespace, job, _ := strings.Cut(q.Jobs.Waiting[0], "/")
		fmt.Fprintf(w, "Next: %s why job %s -n %s\n", p.program, job, namespace)
	default:
		fmt.Fprintf(w, "Next: %s queue get %s\n", p.program, q.Queue)
	}
}

func (p *printer) relations(w io.Writer, label string, all []explain.Relation) {
	var lines []string
	for _, r := range all[:min(len(all), maxAheadLines)] {
		if r.May {
			lines = append(lines, r.Queue)
		} else {
			lines = append(lines, "not "+r.Queue+": "+r.Rule)
		}
	}
	block(w, label, lines...)
}

func (p *printer) node(w io.Writer, n *explain.Node) {
	fmt.Fprintf(w, "Node %s: ready %t, cordoned %t, %d pods\n", n.Node, n.Ready, n.Unschedulable, n.PodCount)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "  Resource\tAllocatable\tUsed\tLeaving\tPromised\tIdle")
	for _, name := range slices.Sorted(maps.Keys(n.Allocatable)) {
		_, _ = fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\t%s\n", name, n.Allocatable[name], cmp.Or(n.Used[name], "0"), cmp.Or(n.Leaving[name], "0"), cmp.Or(n.Promised[name], "0"),
			cmp.Or(n.Idle[name], "0"))
	}
	_ = t.Flush()
	fmt.Fprintf(w, "Next: kubectl describe node %s\n", n.Node)
}
