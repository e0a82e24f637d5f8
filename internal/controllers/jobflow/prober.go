package jobflow

import (
	"context"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/kubernetes/pkg/probe"
	httpprobe "k8s.io/kubernetes/pkg/probe/http"
	tcpprobe "k8s.io/kubernetes/pkg/probe/tcp"
	"sigs.k8s.io/controller-runtime/pkg/event"

	flowapi "hekla.sh/hekla/pkg/apis/flow/v1alpha1"
)

const (
	// proberWorkers bounds how many pods are asked at a time: they mostly answer at once, and what does not should not
	// hold more than its share of sockets.
	proberWorkers = 16

	// probeTimeout is how long a pod has to answer, as it has for a kubelet that is told nothing else.
	probeTimeout = time.Second

	// maxOpen is how many questions of one JobFlow are open at a time, so that a task of thousands of pods does not
	// keep the others waiting.
	maxOpen = 64

	// A pod that does not answer is asked again after the first of these delays, which grows to the second.
	firstDelay = 500 * time.Millisecond
	lastDelay  = 10 * time.Second
)

// prober asks pods, apart from the workers. It remembers which have answered until no flow asks any more.
type prober struct {
	queue workqueue.TypedRateLimitingInterface[openQuestion]
	http  httpprobe.Prober
	tcp   tcpprobe.Prober

	// wake is where JobFlows go of which something new is known.
	wake chan event.GenericEvent

	mutex sync.Mutex
	flows map[types.NamespacedName]*interest
}

// interest is what one JobFlow wants to know.
type interest struct {
	// answers are those of the questions that matter; there is none of one that was never asked.
	answers map[question]*answer
}

// openQuestion is a question, and who wants to know.
type openQuestion struct {
	flow types.NamespacedName
	question
}

func newProber() *prober {
	delays := workqueue.NewTypedItemExponentialFailureRateLimiter[openQuestion](firstDelay, lastDelay)
	return &prober{
		queue: workqueue.NewTypedRateLimitingQueue(delays),
		http:  httpprobe.New(false),
		tcp:   tcpprobe.New(),
		wake:  make(chan event.GenericEvent),
		flows: map[types.NamespacedName]*interest{},
	}
}

// Start asks until the context ends. Only the replica that leads does.
func (p *prober) Start(ctx context.Context) error {
	var workers sync.WaitGroup
	for range proberWorkers {
		workers.Go(func() {
			for p.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	p.queue.ShutDown()
	workers.Wait()
	return nil
}

// answer returns what is known of a question.
func (p *prober) answer(flow types.NamespacedName, asked question) answer {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if wanted := p.flows[flow]; wanted != nil && wanted.answers[asked] != nil {
		return *wanted.answers[asked]
	}
	return answer{}
}

// want says which questions of a JobFlow matter from now on. The first maxOpen that have no answer are asked; the
// others, and what is known of them, are forgotten.
func (p *prober) want(flow types.NamespacedName, questions []question) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if len(questions) == 0 {
		delete(p.flows, flow)
		return
	}
	before := p.flows[flow]
	if before == nil {
		before = &interest{}
	}
	wanted := &interest{answers: map[question]*answer{}}
	open := 0
	for _, asked := range questions {
		known := before.answers[asked]
		if wanted.answers[asked] != nil || known == nil && open == maxOpen {
			continue
		}
		if known == nil {
			known = &answer{}
			p.queue.Add(openQuestion{flow, asked})
		}
		if !known.isYes {
			open++
		}
		wanted.answers[asked] = known
	}
	p.flows[flow] = wanted
}

// next asks the next question, and reports false when there will be none.
func (p *prober) next(ctx context.Context) bool {
	asked, isOver := p.queue.Get()
	if isOver {
		return false
	}
	defer p.queue.Done(asked)
	if !p.matters(asked) {
		p.queue.Forget(asked)
		return true
	}
	failure := p.ask(asked.question)
	if p.learn(asked, failure) {
		flow := &flowapi.JobFlow{}
		flow.Namespace, flow.Name = asked.flow.Namespace, asked.flow.Name
		select {
		case p.wake <- event.GenericEvent{Object: flow}:
		case <-ctx.Done():
		}
	}
	if failure == "" {
		p.queue.Forget(asked)
	} else {
		p.queue.AddRateLimited(asked)
	}
	return true
}

func (p *prober) matters(asked openQuestion) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	wanted := p.flows[asked.flow]
	return wanted != nil && wanted.answers[asked.question] != nil && !wanted.answers[asked.question].isYes
}

// learn keeps how a question ended, and reports whether that is new.
func (p *prober) learn(asked openQuestion, failure string) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	wanted := p.flows[asked.flow]
	if wanted == nil || wanted.answers[asked.question] == nil {
		return false
	}
	learnt := answer{isYes: failure == "", failure: failure}
	isNew := *wanted.answers[asked.question] != learnt
	*wanted.answers[asked.question] = learnt
	return isNew
}

// ask asks a pod as a kubelet would, and returns why it has not answered as it should, "" if it has.
func (p *prober) ask(asked question) string {
	var result probe.Result
	var output string
	var err error
	if asked.path == "" {
		result, output, err = p.tcp.Probe(asked.address, asked.port, probeTimeout)
	} else {
		get := &corev1.HTTPGetAction{
			Path: asked.path, Port: intstr.FromInt(asked.port), Scheme: corev1.URISchemeHTTP,
		}
		if asked.headerName != "" {
			get.HTTPHeaders = []corev1.HTTPHeader{{Name: asked.headerName, Value: asked.headerValue}}
		}
		request, requestErr := httpprobe.NewRequestForHTTPGetAction(get, nil, asked.address, "probe")
		if requestErr != nil {
			return requestErr.Error()
		}
		if !strings.EqualFold(asked.headerName, "User-Agent") {
			request.Header.Set("User-Agent", "hekla-probe")
		}
		result, output, err = p.http.Probe(request, probeTimeout)
	}
	switch {
	case err != nil:
		return err.Error()
	case result == probe.Success, result == probe.Warning:
		return ""
	case output == "":
		return "no answer"
	}
	// The sentence says the number; the word is the library's own.
	return strings.Replace(output, "HTTP probe failed with statuscode:", "the status is", 1)
}
