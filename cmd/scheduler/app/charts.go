package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedauthorizationv1 "k8s.io/client-go/kubernetes/typed/authorization/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"hekla.sh/hekla/internal/answers/charts"
	"hekla.sh/hekla/internal/edge/apiserver"
	"hekla.sh/hekla/internal/explain/rows"
	"hekla.sh/hekla/internal/journal"
	"hekla.sh/hekla/pkg/scheduler"
)

const (
	// chartsName is the ConfigMap by which charts are handed over, and chartsKey the key in it. The installer makes it,
	// so that the scheduler needs no right to create ConfigMaps.
	chartsName, chartsKey = "hekla-charts", "charts.json.gz"
	// savePeriod is how often charts are saved. A leader that ends without order takes that much of them with it.
	savePeriod = 10 * time.Minute
	// savePatience is how long that may take.
	savePatience = 10 * time.Second
	// handOver is what makes that ConfigMap, and gives the rights to it.
	handOver = "kubectl apply --server-side -f installer/hekla.yaml"
)

// chartsRight is the right to hand charts over by the ConfigMap of a namespace.
func chartsRight(namespace string) apiserver.Right {
	return apiserver.Right{
		Of:      authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "update", Resource: "configmaps", Name: chartsName},
		Missing: fmt.Sprintf("the rights to get and update ConfigMap %s/%s are missing: %s", namespace, chartsName, handOver),
	}
}

// chartist takes the samples of charts while this process leads, and hands them over.
type chartist struct {
	store     *charts.Store
	questions *scheduler.Questions
	saved     typedcorev1.ConfigMapInterface
	right     apiserver.Right
	reviews   typedauthorizationv1.SelfSubjectAccessReviewsGetter
	logger    logr.Logger

	cycle   uint64 // the last one that is in a sample
	board   *rows.Board
	isReady bool // what the leader before has saved was read
}

// run takes over what was saved, and takes samples until the context ends. Then it saves them, unless leadership is
// lost.
func (c *chartist) run(ctx, leading context.Context) {
	c.restore(ctx)
	sampling, saving := time.NewTicker(charts.Period), time.NewTicker(savePeriod)
	defer sampling.Stop()
	defer saving.Stop()
	for {
		c.sample(ctx)
		select {
		case <-ctx.Done():
			c.save(leading)
			return
		case <-saving.C:
			c.save(ctx)
		case <-sampling.C:
		}
	}
}

// restore takes over what was saved. What cannot be read is logged and left: charts begin again. A ConfigMap that is
// missing, or may not be read or written, is a problem that also the page shows: nothing will be handed over.
func (c *chartist) restore(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, savePatience)
	defer cancel()
	object, err := c.saved.Get(ctx, chartsName, metav1.GetOptions{})
	if err == nil && len(object.BinaryData[chartsKey]) > 0 {
		err = c.store.Restore(object.BinaryData[chartsKey], time.Now())
	}
	c.isReady = err == nil || !apierrors.IsForbidden(err)
	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		c.tell(c.sentence(err))
		return
	case err != nil:
		c.logger.Info("The charts of the leader before cannot be read; they begin again", "configmap", chartsName, "reason", err.Error())
	}
	if may, err := c.right.IsThere(ctx, c.reviews); err == nil && !may { // otherwise the first save tells
		c.tell(c.right.Missing)
	}
}

// sentence says why charts are not handed over, and what mends that if it is known.
func (c *chartist) sentence(err error) string {
	switch {
	case apierrors.IsForbidden(err):
		return c.right.Missing
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("%s; %s makes it", err, handOver)
	}
	return err.Error()
}

// tell notes why charts are not handed over, "" if they are, and logs it if it is new.
func (c *chartist) tell(why string) {
	switch {
	case !c.store.SetProblem(why):
	case why == "":
		c.logger.Info("The charts are saved for the next leader again", "configmap", chartsName)
	default:
		c.logger.Info("The charts are not handed over between leaders", "configmap", chartsName, "reason", why)
	}
}

// sample asks for the numbers of now.
func (c *chartist) sample(ctx context.Context) {
	found, err := c.questions.Overview(ctx, c.cycle)
	if err != nil {
		return // the scheduler stops, or has too much to do: a gap
	}
	evictions := map[string]int{}
	if found.Board != nil {
		c.board, c.cycle = found.Board, found.Cycle
		evictions = evictionsOf(found.Board, found.Entries)
	}
	if c.board != nil {
		c.store.Add(charts.Of(c.board, evictions, found.Time))
	}
}

// evictionsOf counts evictions by the queue or ClusterQueue of the victim.
func evictionsOf(b *rows.Board, entries []journal.Entry) map[string]int {
	evictions := map[string]int{}
	var queues map[string]string // of Workloads
	for _, e := range entries {
		switch {
		case e.Kind == journal.Evicted && e.Queue != "":
			evictions["Queue/"+e.Queue]++
		case e.Kind == journal.SentBack && strings.Contains(e.Job, "/workload/"):
			if queues == nil {
				queues = map[string]string{}
				for _, j := range b.Jobs {
					if j.Kind == rows.KindWorkload && j.Queue != "" {
						queues[j.Job] = rows.KindClusterQueue + "/" + j.Queue
					}
				}
			}
			evictions[queues[e.Job]]++
		case e.Kind == journal.Evicted:
			evictions[""]++
		}
	}
	return evictions
}

// save saves what the next leader takes over. What the one before has saved is not overwritten if it could not be read.
func (c *chartist) save(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, savePatience)
	defer cancel()
	packed, left, err := c.store.Save()
	var object *corev1.ConfigMap
	if err == nil {
		object, err = c.saved.Get(ctx, chartsName, metav1.GetOptions{})
	}
	if err == nil && !c.isReady && len(object.BinaryData[chartsKey]) > 0 {
		err = errors.New("it could not be read when this process began to lead, and is not overwritten before the scheduler starts again")
	}
	if err == nil {
		c.isReady = true
		object.BinaryData = map[string][]byte{chartsKey: packed}
		_, err = c.saved.Update(ctx, object, metav1.UpdateOptions{})
	}
	if err != nil {
		if !errors.Is(ctx.Err(), context.Canceled) {
			c.tell(c.sentence(err))
		}
		return
	}
	c.tell("")
	c.logger.V(1).Info("The charts are saved for the next leader", "bytes", len(packed), "linesLeftOut", left)
}
