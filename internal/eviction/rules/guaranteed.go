package rules

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/quota/guarantee"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// Guaranteed are the rules of guaranteed shares for a preemptor, about queues and about pods.
type Guaranteed struct {
	*guarantee.Rules
	// Ask says which pods of the preemptor ask for room, if it is in a subtree.
	Ask Ask

	session     *framework.Session
	preemptor   *cluster.Job
	isDaemon    bool
	application types.NamespacedName // of the preemptor, zero if it is of none
}

// guaranteed returns the rules of guaranteed shares for a preemptor, nil if there are no subtrees in which they hold.
func guaranteed(s *framework.Session, scope decision.Scope, preemptor *cluster.Job, others quota.Rules, wanted func() resources.Vector) *Guaranteed {
	subtrees := s.Policy.Subtrees()
	if subtrees == nil || !scope.CrossesQueues() {
		return nil
	}
	g := &Guaranteed{session: s, preemptor: preemptor, isDaemon: subtrees.DaemonSets && isDaemonJob(preemptor), Ask: AskOf(s, subtrees, preemptor),
		application: ApplicationOf(s, scope, preemptor)}
	g.Rules = guaranteesOf(s, subtrees, scope, preemptor, others, wanted, g.Ask.IsEarly(s.Now))
	return g
}

// guaranteesOf returns the rules of guaranteed shares about queues, around the rules for other queues.
func guaranteesOf(
	s *framework.Session, subtrees *guarantee.Subtrees, scope decision.Scope, preemptor *cluster.Job, others quota.Rules, wanted func() resources.Vector, isEarly bool,
) *guarantee.Rules {
	isDaemon := subtrees.DaemonSets && isDaemonJob(preemptor)
	p := guarantee.Preemptor{IsDaemon: isDaemon, Node: preemptor.QuotaNode(), Priority: preemptor.Priority, Usage: &preemptor.Usage, Wanted: wanted,
		Reclaims: scope == decision.BetweenQueues, IsEarly: isEarly}
	if lacks := preemptor.LacksPromises(); lacks > 1 && !isDaemon && subtrees.Contains(p.Node) {
		pending := s.Pending(preemptor)
		p.Lacks = cluster.RequestOf(pending[:min(lacks, len(pending))])
	}
	return guarantee.New(subtrees, others, p)
}

// Application is that of the preemptor, by namespace and id, zero if it is of none.
func (g *Guaranteed) Application() types.NamespacedName { return g.application }

// IsGoverned reports whether the rules of guaranteed shares hold between the preemptor and a job (rule G0).
func (r *Rules) IsGoverned(j *cluster.Job) bool {
	return r.Guarantees != nil && r.Guarantees.Governs(j.QuotaNode())
}

// RanksJobs reports whether victims are compared by rule G8.
func (r *Rules) RanksJobs() bool { return r.Guarantees != nil && r.Guarantees.RanksJobs() }

// AsksOneByOne reports whether each pod of the preemptor asks by itself (rule G9).
func (r *Rules) AsksOneByOne() bool { return r.Guarantees != nil && r.Guarantees.Ask.IsSurplus }

// protects names the rule that protects a pod of another queue of the subtree, none if there is none. Without a mark a
// pod may be evicted.
func (g *Guaranteed) protects(t *cluster.Task) (why verdict.Protection) {
	if mark, ok := t.Mark(); ok && mark != "true" {
		why.Kind = verdict.RuleMarkedFalse
	} else if IsOfDaemonSet(t) {
		why.Kind = verdict.RuleOfDaemonSet
	} else if g.application.Name != "" && t.Job.ID.Namespace == g.application.Namespace && t.Application() == g.application.Name {
		why.Kind = verdict.RuleSameApplication
	}
	return why
}

// ApplicationOf returns the namespace and the id of the application of a preemptor, zero if it is of none or no rule in
// the scope asks for it (rule G3).
func ApplicationOf(s *framework.Session, scope decision.Scope, preemptor *cluster.Job) (of types.NamespacedName) {
	if s.Policy.Subtrees() == nil || !scope.CrossesQueues() {
		return of
	}
	if id := applicationOf(preemptor); id != "" {
		of = types.NamespacedName{Namespace: preemptor.ID.Namespace, Name: id}
	}
	return of
}

// applicationOf returns the application of the pods of a job. If they name several, it is the least, whichever comes
// first in the model.
func applicationOf(j *cluster.Job) (id string) {
	for _, t := range j.Tasks() {
		if named := t.Application(); !t.IsStandIn && named != "" && (id == "" || named < id) {
			id = named
		}
	}
	return id
}

// isDaemonJob reports whether all pods of a job that wait are of a DaemonSet, and each can only run on one node.
func isDaemonJob(j *cluster.Job) bool {
	isAny := false
	for _, t := range j.Tasks() {
		if t.Status != cluster.Pending {
			continue
		}
		if !IsOfDaemonSet(t) || nodeOf(t) == "" {
			return false
		}
		isAny = true
	}
	return isAny
}

// IsForDaemon reports whether room is taken for pods of a DaemonSet, each on its own node and nowhere else (rule G10).
func (r *Rules) IsForDaemon() bool {
	return r.Guarantees != nil && r.Guarantees.isDaemon && r.Scope == decision.BetweenQueues
}

// StandsElsewhere reports whether room is taken for pods of a DaemonSet, and a pod is on none of their nodes. It may
// only leave because its gang cannot do without those that are (rules G10 and J2).
func (r *Rules) StandsElsewhere(v *cluster.Task) bool {
	return r.IsForDaemon() && !slices.ContainsFunc(r.Preemptor.Tasks(), func(t *cluster.Task) bool {
		return (t.Status == cluster.Pending || t.Status == cluster.Pipelined) && nodeOf(t) == v.NodeName()
	})
}

// OwnNodes returns the nodes on which alone some pods may run, by name.
func OwnNodes(pods []*cluster.Task) (names []string) {
	for _, t := range pods {
		if name := nodeOf(t); name != "" && t.Status == cluster.Pending {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// nodeOf returns the name of the only node on which a pod may run by its required affinity, "" if there is no such
// name. The controller of DaemonSets writes it in one form.
func nodeOf(t *cluster.Task) string {
	affinity := t.Pod.Spec.Affinity
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	name := ""
	for _, term := range affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		i := slices.IndexFunc(term.MatchFields, func(f corev1.NodeSelectorRequirement) bool {
			return f.Key == "metadata.name" && f.Operator == corev1.NodeSelectorOpIn && len(f.Values) == 1
		})
		if i < 0 || name != "" && name != term.MatchFields[i].Values[0] {
			return ""
		}
		name = term.MatchFields[i].Values[0]
	}
	return name
}

// Variant tells preemptors of one queue apart from which different pods may be protected.
func (r *Rules) Variant() (v uint8) {
	if g := r.Guarantees; g != nil {
		if g.Ask.IsEarly(r.Session.Now) {
			v |= 1
		}
		if g.isDaemon {
			v |= 2
		}
	}
	return v
}

// IsOfDaemonSet reports whether a DaemonSet controls a pod.
func IsOfDaemonSet(t *cluster.Task) bool {
	owner := metav1.GetControllerOfNoCopy(t.Pod)
	return owner != nil && owner.Kind == "DaemonSet" && owner.APIVersion == appsv1.SchemeGroupVersion.String()
}

// freshTime is how long a pod that a plan has placed counts as the oldest of its class. Another pod then leaves, if one
// will do.
const freshTime = time.Minute

// IsFreshlyPlaced reports whether a plan has placed a pod a short time ago. It still has the record of that plan.
func IsFreshlyPlaced(t *cluster.Task, now time.Time) bool {
	return now.Sub(t.Started()) < freshTime && t.Pod.Annotations[schedulingv1beta1.PromiseRecordKey] != ""
}

// Class is what of a victim counts before its priority (rule G8).
type Class int8

// The classes. Both together are a class too.
const (
	Originator Class = 1 << iota // the first pod of its application
	OptedOut                     // its owner asks not to evict it
)

// ClassOf returns the class of a victim, 0 if it has none or the rules of guaranteed shares do not hold.
func (g *Guaranteed) ClassOf(t *cluster.Task) (c Class) {
	if !g.Governs(t.Job.QuotaNode()) {
		return 0
	}
	return MarksOf(g.session, t)
}

// MarksOf returns the class of a pod by its own marks and its place in its application.
func MarksOf(s *framework.Session, t *cluster.Task) (c Class) {
	if !t.AllowsPreemption(s.Cluster.PriorityClass(t.Pod.Spec.PriorityClassName)) {
		c = OptedOut
	}
	if id := t.Application(); id != "" && originators(s)[application{t.Job.ID.Namespace, id}] == t {
		c |= Originator
	}
	return c
}

// application identifies an application.
type application struct{ namespace, id string }

// originators returns the first pod of each application: the pod created first, by UID among equals.
func originators(s *framework.Session) map[application]*cluster.Task {
	return framework.Keep(s, "originators", func() map[application]*cluster.Task {
		first := map[application]*cluster.Task{}
		s.Cluster.EachJob(func(j *cluster.Job) {
			id := applicationOf(j)
			if id == "" {
				return
			}
			of := application{j.ID.Namespace, id}
			for _, t := range j.Tasks() {
				if t.IsStandIn {
					continue
				}
				if known := first[of]; known == nil || compareAge(t, known) < 0 {
					first[of] = t
				}
			}
		})
		return first
	})
}

// compareAge is negative if a pod is older than another.
func compareAge(a, b *cluster.Task) int {
	if c := a.Created().Compare(b.Created()); c != 0 {
		return c
	}
	return strings.Compare(string(a.UID()), string(b.UID()))
}

// SizeOf returns the dominant share of a victim's request, which decides between victims that are otherwise equal (rule
// G8).
func (g *Guaranteed) SizeOf(t *cluster.Task) resources.Ratio {
	share, _ := resources.DominantShare(t.Request(), g.session.Cluster.Total)
	return share
}

// AllowsPlan reports whether a plan as a whole is allowed by the rules about queues.
func (r *Rules) AllowsPlan(leaving, placed []*cluster.Task) bool {
	if r.Guarantees == nil {
		return r.Queues.AllowsPlan(nil, nil)
	}
	var from []*quota.Node
	for _, t := range leaving {
		if n := t.Job.QuotaNode(); len(from) == 0 || from[len(from)-1] != n {
			from = append(from, n)
		}
	}
	return r.Queues.AllowsPlan(from, cluster.RequestOf(placed))
}

// cause is [Rules.Cause] for a victim of another queue of the subtree.
func (g *Guaranteed) cause(victim *cluster.Task, placed []*cluster.Task) (rule, message string) {
	if g.isDaemon {
		owner := metav1.GetControllerOfNoCopy(placed[0].Pod)
		return "G10", fmt.Sprintf("by rule G10 pod %s of DaemonSet %s takes the room of a pod of job %s on node %s%s", placed[0].Key(), owner.Name,
			victim.Job.Name(), victim.Node.Name, g.reluctance(victim))
	}
	q := victim.Job.QuotaNode()
	message = fmt.Sprintf("by rule G4 job %s in queue %s", g.preemptor.Name(), g.preemptor.QueueName)
	holds := g.amounts(g.Entitlement(q, cluster.RequestOf(placed)), "%s %s of the %s it is guaranteed")
	keeps := g.amounts(g.Kept(q, victim.Request()), "%s %s of its %s")
	message += fmt.Sprintf(", which holds %s, takes the room of a pod of queue %s", holds, victim.Job.QueueName)
	if keeps != "" {
		message += ", which keeps " + keeps
	}
	return "G4", message + g.reluctance(victim)
}

// reluctance says of a victim with a class that it was evicted last.
func (g *Guaranteed) reluctance(victim *cluster.Task) string {
	if g.ClassOf(victim) == 0 {
		return ""
	}
	return "; it has asked to stay, and no other pod could be evicted"
}

// amounts lists what queues hold and are guaranteed. The format takes a resource and the two amounts.
func (g *Guaranteed) amounts(all []guarantee.Amount, format string) string {
	parts := make([]string, len(all))
	for i, a := range all {
		name := g.session.Cluster.Resources.Name(a.Dim)
		parts[i] = fmt.Sprintf(format, name, resources.Format(name, a.Held), resources.Format(name, a.Guaranteed))
	}
	return strings.Join(parts, ", ")
}
