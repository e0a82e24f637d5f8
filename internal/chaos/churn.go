package chaos

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	busv1alpha1 "hekla.sh/hekla/pkg/apis/bus/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

const (
	// namespace is where the jobs of the churn are.
	namespace = "chaos"
	// queuedLabel marks pods that run under a quota.
	queuedLabel = "hekla.sh/chaos-queued"
	// DefaultJobs is how many jobs the churn has unfinished at a time: enough that some wait on three nodes.
	DefaultJobs = 24
	// devicesPerNode is how many devices each node offers.
	devicesPerNode = 2
	// cordonedFor is how many moves of the churn a node stays cordoned.
	cordonedFor = 10
)

// kind is one of the kinds of jobs that the churn creates.
type kind struct {
	name string
	// share is how often it is created, compared with the others.
	share  int
	create func(c *churn, ctx context.Context, name string) error
}

var kinds = [...]kind{
	{"gang", 5, (*churn).createGang},
	{"device", 2, (*churn).createDevices},
	{"queued", 4, (*churn).createQueued},
}

// KindNames are the names of the kinds of jobs.
func KindNames() []string {
	var names []string
	for i := range kinds {
		names = append(names, kinds[i].name)
	}
	return names
}

// churn creates, changes and removes what the scheduler and the controllers work on. It is used by one goroutine.
type churn struct {
	*run
	random *rand.Rand
	number int
	// created counts jobs by kind, ended by how they ended.
	created, ended map[string]int
	// cordoned are nodes, and after how many moves they are given back.
	cordoned map[string]int
	moves    int
	// used are the parts of the CPUs that pods held, second by second, of the cpus that all nodes have.
	used []float64
	cpus resource.Quantity
}

func newChurn(ctx context.Context, r *run) (*churn, error) {
	nodes, err := r.core.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var cpus resource.Quantity
	for i := range nodes.Items {
		node := nodes.Items[i].Name
		cpus.Add(*nodes.Items[i].Status.Allocatable.Cpu())
		slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node + "-chaos"}, Spec: resourcev1.ResourceSliceSpec{
			Driver: "chaos.hekla.sh", NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1}}}
		for i := range devicesPerNode {
			slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: fmt.Sprint("device-", i)})
		}
		if _, err := r.core.ResourceV1().ResourceSlices().Create(ctx, slice, metav1.CreateOptions{}); err != nil {
			return nil, err
		}
	}
	return &churn{run: r, random: randomOf(r.options.Seed, "churn"), created: map[string]int{}, ended: map[string]int{}, cordoned: map[string]int{}, cpus: cpus}, nil
}

// move does what users and operators do in about a second. An error says that the API server did not do its part; the
// next move goes on.
func (c *churn) move(ctx context.Context) error {
	c.moves++
	left, err := c.tidy(ctx)
	if err != nil {
		return err
	}
	for _, node := range slices.Sorted(maps.Keys(c.cordoned)) {
		if c.moves >= c.cordoned[node] {
			if err := c.cordon(ctx, node, false); err != nil {
				return err
			}
			delete(c.cordoned, node)
		}
	}
	if len(left) < c.options.Jobs {
		if err := c.create(ctx); err != nil {
			return err
		}
	}
	switch c.random.IntN(12) {
	case 0:
		return c.evict(ctx)
	case 1:
		if len(left) > c.options.Jobs/2 {
			return c.remove(ctx, left[c.random.IntN(len(left))], "removed early")
		}
	case 2:
		nodes, err := c.cluster.Nodes(ctx)
		if err != nil || len(nodes) == 0 {
			return err
		}
		node := nodes[c.random.IntN(len(nodes))]
		c.cordoned[node] = c.moves + cordonedFor
		return c.cordon(ctx, node, true)
	}
	return nil
}

// job is one of the jobs that are there.
type job struct {
	isQueued bool
	name     string
	end      string // how it ended, "" if it has not
	status   any    // all that it says
}

// jobs lists all jobs of the churn.
func (c *churn) jobs(ctx context.Context) ([]job, error) {
	var all []job
	gangs, err := c.hekla.BatchV1alpha1().Jobs(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range gangs.Items {
		j := job{name: gangs.Items[i].Name, status: gangs.Items[i].Status.State}
		switch phase := gangs.Items[i].Status.State.Phase; phase {
		case batchv1alpha1.Completed, batchv1alpha1.Failed, batchv1alpha1.Terminated, batchv1alpha1.Aborted:
			j.end = string(phase)
		}
		all = append(all, j)
	}
	queued, err := c.core.BatchV1().Jobs(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range queued.Items {
		j := job{isQueued: true, name: queued.Items[i].Name, status: queued.Items[i].Status}
		for _, condition := range queued.Items[i].Status.Conditions {
			if (condition.Type == batchv1.JobComplete || condition.Type == batchv1.JobFailed) && condition.Status == corev1.ConditionTrue {
				j.end = string(condition.Type)
			}
		}
		all = append(all, j)
	}
	return all, nil
}

// tidy counts and removes what has ended, and returns the rest.
func (c *churn) tidy(ctx context.Context) (left []job, err error) {
	all, err := c.jobs(ctx)
	if err != nil {
		return nil, err
	}
	for _, j := range all {
		if j.end == "" {
			left = append(left, j)
		} else if err := c.remove(ctx, j, j.end); err != nil {
			return nil, err
		}
	}
	return left, nil
}

func (c *churn) remove(ctx context.Context, j job, end string) error {
	background := metav1.DeletePropagationBackground // for a Job of batch/v1 the API server would leave its pods otherwise
	options := metav1.DeleteOptions{PropagationPolicy: &background}
	var err error
	if j.isQueued {
		err = c.core.BatchV1().Jobs(namespace).Delete(ctx, j.name, options)
	} else {
		err = c.hekla.BatchV1alpha1().Jobs(namespace).Delete(ctx, j.name, options)
	}
	if err == nil {
		c.ended[end]++
	}
	return ignoreGone(err)
}

func (c *churn) create(ctx context.Context) error {
	total := 0
	for i := range kinds {
		total += kinds[i].share
	}
	at := c.random.IntN(total)
	for i := range kinds {
		if at -= kinds[i].share; at < 0 {
			c.number++
			err := kinds[i].create(c, ctx, fmt.Sprintf("%s-%d", kinds[i].name, c.number))
			if err == nil {
				c.created[kinds[i].name]++
			}
			return err
		}
	}
	return nil
}

// between returns a number from least to most.
func (c *churn) between(least, most int) int { return least + c.random.IntN(most-least+1) }

func (c *churn) either(a, b string) string { return []string{a, b}[c.random.IntN(2)] }

func (c *churn) template(labels map[string]string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{"hekla.sh/run-for": fmt.Sprintf("%ds", c.between(2, 15))}},
		Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, SchedulerName: schedulerName, Containers: []corev1.Container{{
			Name: "main", Image: "busybox", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(int64(c.between(1, 4)), resource.DecimalSI)}}}}},
	}
}

func (c *churn) gang(name string, template *corev1.PodTemplateSpec, most int) *batchv1alpha1.Job {
	size := int32(c.between(1, most))
	j := &batchv1alpha1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: batchv1alpha1.JobSpec{
		SchedulerName: schedulerName, Queue: c.either("chaos-a", "chaos-b"), MinAvailable: int32(c.between(1, int(size))), MaxRetry: 100,
		PriorityClassName: c.either("chaos-high", "chaos-low"),
		Tasks:             []batchv1alpha1.TaskSpec{{Name: "worker", Replicas: size, Template: *template}}}}
	if c.random.IntN(4) > 0 { // others must never be evicted
		j.Annotations = map[string]string{scheduling.PreemptableKey: "true"}
	}
	if c.random.IntN(2) == 0 {
		j.Spec.Policies = batchv1alpha1.LifecyclePolicies{{Event: busv1alpha1.PodEvictedEvent, Action: busv1alpha1.RestartJobAction}}
	}
	return j
}

func (c *churn) createGang(ctx context.Context, name string) error {
	template := c.template(nil)
	_, err := c.hekla.BatchV1alpha1().Jobs(namespace).Create(ctx, c.gang(name, &template, 5), metav1.CreateOptions{})
	return err
}

func (c *churn) createDevices(ctx context.Context, name string) error {
	template, claims := c.template(nil), "device"
	template.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "device", ResourceClaimTemplateName: &claims}}
	template.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "device"}}
	_, err := c.hekla.BatchV1alpha1().Jobs(namespace).Create(ctx, c.gang(name, &template, 2), metav1.CreateOptions{})
	return err
}

func (c *churn) createQueued(ctx context.Context, name string) error {
	parallelism, isSuspended := int32(c.between(1, 2)), true
	completions, retries := parallelism*int32(c.between(1, 2)), int32(100)
	labels := map[string]string{"kueue.x-k8s.io/queue-name": c.either("chaos-a", "chaos-b")}
	if c.random.IntN(3) == 0 {
		labels["kueue.x-k8s.io/priority-class"] = "chaos-high"
	}
	template := c.template(map[string]string{queuedLabel: ""})
	_, err := c.core.BatchV1().Jobs(namespace).Create(ctx, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec: batchv1.JobSpec{Parallelism: &parallelism, Completions: &completions, BackoffLimit: &retries, Suspend: &isSuspended, Template: template}}, metav1.CreateOptions{})
	return err
}

// ignoreGone is for what another has removed meanwhile, or a budget protects.
func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsTooManyRequests(err) {
		return nil
	}
	return err
}

// evict evicts a pod that runs, as an operator does who drains a node.
func (c *churn) evict(ctx context.Context) error {
	pods, err := c.core.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{FieldSelector: "status.phase=Running"})
	if err != nil || len(pods.Items) == 0 {
		return err
	}
	pod := &pods.Items[c.random.IntN(len(pods.Items))]
	return ignoreGone(c.core.CoreV1().Pods(namespace).EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod.Name}}))
}

func (c *churn) cordon(ctx context.Context, node string, isCordoned bool) error {
	patch := fmt.Appendf(nil, `{"spec": {"unschedulable": %t}}`, isCordoned)
	_, err := c.core.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// end gives back what the churn has changed, so that what is left can end.
func (c *churn) end(ctx context.Context) error {
	for _, node := range slices.Sorted(maps.Keys(c.cordoned)) {
		if err := c.cordon(ctx, node, false); err != nil {
			return err
		}
		delete(c.cordoned, node)
	}
	return nil
}

// watchPods counts which part of the CPUs pods hold, and compares what runs under quota with what the quotas are
// together. Both queues are of one cohort and have one flavor, so the sum counts; no quota is changed.
func (c *churn) watchPods(ctx context.Context) error {
	pods, err := c.core.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	held, _ := heldCPUs(pods.Items)
	c.used = append(c.used, held.AsApproximateFloat64()/c.cpus.AsApproximateFloat64())
	queued := slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { _, isQueued := pod.Labels[queuedLabel]; return !isQueued })
	queues, err := c.hekla.KueueV1beta2().ClusterQueues().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var quota resource.Quantity
	for i := range queues.Items {
		for _, group := range queues.Items[i].Spec.ResourceGroups {
			for _, flavor := range group.Flavors {
				for _, r := range flavor.Resources {
					quota.Add(r.NominalQuota)
				}
			}
		}
	}
	if v := beyondQuota(queued, quota, time.Now()); v != nil {
		c.violate(*v)
	}
	return nil
}
