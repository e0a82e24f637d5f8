package resourcequota

import (
	"fmt"
	"strings"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// Name is the name of the plugin in the configuration.
const Name = "resourcequota"

// Factory makes the plugin.
func Factory() framework.PluginFactory {
	return framework.PluginFactory{Name: Name, New: func(conf.Switches, conf.Arguments) (framework.Plugin, error) {
		return &plugin{}, nil
	}}
}

type plugin struct {
	cluster *model.Cluster
	books   map[string][]*account     // of the namespaces that this session asked for
	jobs    map[string][]*cluster.Job // that have pods or are admitted, by namespace with a quota; nil until it is needed
	// asked is the job of the last question. The plugin is not told when a job is admitted, but that happens before the
	// next question.
	asked *cluster.Job
}

func (*plugin) Name() string { return Name }

func (p *plugin) OpenSession(s *framework.Session) {
	*p = plugin{cluster: s.Cluster, books: map[string][]*account{}}
}

// MayEnqueue permits a job that fits into the quotas of its namespace.
func (p *plugin) MayEnqueue(j *cluster.Job) (framework.Vote, *verdict.Verdict) {
	p.bookAsked()
	if len(p.cluster.Quotas(j.ID.Namespace)) == 0 {
		return framework.Permit, nil
	}
	accounts := p.accounts(j.ID.Namespace)
	p.asked = j
	for _, a := range accounts {
		if v := p.refusal(a, j); v != nil {
			return framework.Reject, v
		}
	}
	return framework.Permit, nil
}

// bookAsked books the job of the last question if it was admitted.
func (p *plugin) bookAsked() {
	if j := p.asked; j != nil && isAdmitted(j) {
		p.asked = nil
		p.book(j)
	}
}

func (p *plugin) book(j *cluster.Job) {
	if !j.ExpectsPods() {
		return
	}
	for _, a := range p.books[j.ID.Namespace] {
		if !a.concerns(j) {
			continue
		}
		for i := range a.lines {
			a.lines[i].booked += p.lacks(j, a.lines[i].measure)
		}
	}
}

// isAdmitted reports whether a job is admitted, and pods that it needs to start may not exist yet.
func isAdmitted(j *cluster.Job) bool { return j.Phase == schedulingv1beta1.PodGroupInqueue }

// accounts returns the quotas of a namespace with their bookings.
func (p *plugin) accounts(namespace string) []*account {
	if accounts, known := p.books[namespace]; known {
		return accounts
	}
	var accounts []*account
	for _, quota := range p.cluster.Quotas(namespace) {
		accounts = append(accounts, p.open(quota))
	}
	p.books[namespace] = accounts
	if p.jobs == nil {
		p.jobs = map[string][]*cluster.Job{}
		p.cluster.EachJob(func(j *cluster.Job) {
			if len(p.cluster.Quotas(j.ID.Namespace)) > 0 && (isAdmitted(j) || len(j.Tasks()) > 0) {
				p.jobs[j.ID.Namespace] = append(p.jobs[j.ID.Namespace], j)
			}
		})
	}
	for _, a := range accounts {
		p.useAtLeast(a, p.jobs[namespace])
	}
	for _, j := range p.jobs[namespace] {
		if isAdmitted(j) {
			p.book(j)
		}
	}
	return accounts
}

// useAtLeast counts as used of a quota what the pods of some jobs use. The watch may show pods before what the quota
// counts of them, and what a job lacks is less by then.
func (p *plugin) useAtLeast(a *account, jobs []*cluster.Job) {
	for i := range a.lines {
		l := &a.lines[i]
		var known int64
		for _, j := range jobs {
			if a.concerns(j) {
				known = min(known+p.has(j, l.measure), resources.MaxQuantity)
			}
		}
		if known > l.used {
			l.used, l.left = known, l.hard-known
		}
	}
}

// refusal says what a job lacks in a quota, nil if nothing.
func (p *plugin) refusal(a *account, j *cluster.Job) *verdict.Verdict {
	if !a.concerns(j) {
		return nil
	}
	var short []verdict.Shortage
	var details []string
	help := verdict.HelpQueue
	for i := range a.lines {
		l := &a.lines[i]
		if all := p.minimum(j, l.measure); all > l.hard {
			// The job may have pods now, but could not get them again after losing them.
			short = append(short, verdict.Shortage{Resource: l.Resource, Need: all, Have: l.hard})
			details = append(details, fmt.Sprintf("%s is %s in all", l.name, resources.Format(l.Resource, l.hard)))
			continue
		}
		need, have := p.lacks(j, l.measure), max(l.left-l.booked, 0)
		if need <= have {
			continue
		}
		short = append(short, verdict.Shortage{Resource: l.Resource, Need: need, Have: have})
		details = append(details, l.String())
		if need <= l.left {
			// The quota counts a new pod as used before the watch delivers the pod. Until then the pod counts twice.
			// The only event when that ends is that the pod gets a node.
			help |= verdict.HelpPod
		}
	}
	if short == nil {
		return nil
	}
	return &verdict.Verdict{Code: verdict.Refused, Subject: fmt.Sprintf("ResourceQuota %s/%s", a.quota.Namespace, a.quota.Name),
		Help: help, Shortages: short, Detail: strings.Join(details, "; ")}
}

// String says "of requests.cpu 10, 8 used, 1 kept for admitted jobs".
func (l *line) String() string {
	text := fmt.Sprintf("of %s %s, %s used", l.name, resources.Format(l.Resource, l.hard), resources.Format(l.Resource, l.used))
	if l.booked > 0 {
		text += fmt.Sprintf(", %s kept for admitted jobs", resources.Format(l.Resource, l.booked))
	}
	return text
}
