package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"hekla.sh/hekla/internal/localcluster"
	"hekla.sh/hekla/internal/process"
	"hekla.sh/hekla/pkg/client/clientset/versioned"
)

// Namespace is where the demo's jobs are.
const Namespace = "hekla-demo"

// The jobs of example/demo: one that is evicted, and that for which it is, with its PriorityClass.
const (
	evicted        = "training"
	preemptor      = "urgent"
	preemptorClass = "demo-urgent"
)

const (
	// poll is how often the scene is looked at: often enough that a start is seen to be at once.
	poll = 100 * time.Millisecond
	// patience bounds the wait for each event of the demo, from the last change that was seen.
	patience = time.Minute
	// pause is how long a person gets to read what has come to rest.
	pause = 3 * time.Second
)

// Demo is one performance on a local cluster where Hekla runs.
type Demo struct {
	cluster *localcluster.Cluster
	core    kubernetes.Interface
	batch   versioned.Interface
	stage   stage
	pause   time.Duration
	waits   string // the job that waits at the end
}

// Waits is the job that waits when Run has ended: the one that was evicted, or one that the configuration of the
// scheduler lets wait instead.
func (d *Demo) Waits() string { return d.waits }

// New prepares a demo that is shown on output: drawn again in place if that is a terminal, else as a log.
func New(cluster *localcluster.Cluster, output io.Writer) (*Demo, error) {
	core, err := kubernetes.NewForConfig(cluster.Config())
	if err != nil {
		return nil, err
	}
	batch, err := versioned.NewForConfig(cluster.Config())
	if err != nil {
		return nil, err
	}
	d := &Demo{cluster: cluster, core: core, batch: batch}
	if terminal := process.TerminalOf(output); terminal != nil {
		d.stage, d.pause = &screen{terminal: terminal}, pause
	} else {
		d.stage = &transcript{output: output, began: time.Now()}
	}
	return d, nil
}

// Run performs the demo, which takes about a minute, and leaves what it has made in the cluster. Its error says
// what did not happen as it should.
func (d *Demo) Run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, d.stage.end()) }()
	if err := d.clear(ctx); err != nil {
		return fmt.Errorf("make room in namespace %s: %w", Namespace, err)
	}
	for _, act := range []func(context.Context) error{d.gangWaits, d.smallJobPasses, d.nodeJoins, d.queuesShare, d.evicts} {
		if err := act(ctx); err != nil {
			return err
		}
	}
	return nil
}

// until shows the scene until something has happened, and returns how long that took.
func (d *Demo) until(ctx context.Context, event string, hasHappened func(scene) bool) (time.Duration, error) {
	began := time.Now()
	changed := began
	var last scene
	for {
		looking, cancel := context.WithTimeout(ctx, patience)
		s, err := d.look(looking)
		cancel()
		if err == nil {
			if s.String() != last.String() {
				changed = time.Now()
			}
			last = s
			err = d.stage.show(s)
		}
		switch {
		case ctx.Err() != nil:
			return 0, ctx.Err()
		case err == nil && hasHappened(s):
			return time.Since(began), nil
		case time.Since(changed) > patience:
			return 0, fmt.Errorf("nothing has changed for %s: %s; there is %s, and the logs are in %s", patience, event, last, d.cluster.LogDir())
		case err != nil:
			return 0, fmt.Errorf("look at the cluster: %w", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(poll):
		}
	}
}

// rest gives a person time to read. A log needs none.
func (d *Demo) rest(ctx context.Context) error {
	ends := time.Now().Add(d.pause)
	_, err := d.until(ctx, "a pause", func(scene) bool { return !time.Now().Before(ends) })
	return err
}

// clear makes the namespace, or removes the jobs of a demo before from it and waits until their pods are gone.
func (d *Demo) clear(ctx context.Context) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}
	_, err := d.core.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	background := metav1.DeletePropagationBackground
	options := metav1.DeleteOptions{PropagationPolicy: &background}
	if err := d.batch.BatchV1alpha1().Jobs(Namespace).DeleteCollection(ctx, options, metav1.ListOptions{}); err != nil {
		return err
	}
	pods := d.core.CoreV1().Pods(Namespace)
	if err := pods.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		left, err := pods.List(ctx, metav1.ListOptions{})
		if err != nil || len(left.Items) == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d pods in namespace %s do not go: %w", len(left.Items), Namespace, ctx.Err())
		case <-time.After(poll):
		}
	}
}
