package edge

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"

	"hekla.sh/hekla/pkg/cluster"
)

func cpu() time.Duration {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

func TestZZBench(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("BENCH"))
	if n == 0 {
		t.Skip()
	}
	clients, _ := adminClients(t)
	ns := space(t, clients)
	run := func(what string, bind func(pods []*corev1.Pod)) {
		pods := make([]*corev1.Pod, n)
		workqueue.ParallelizeUntil(context.Background(), 8, n, func(i int) {
			p, err := clients.Core.CoreV1().Pods(ns).Create(context.Background(), &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{GenerateName: "p-"},
				Spec:       corev1.PodSpec{SchedulerName: "volcano", Containers: []corev1.Container{{Name: "main", Image: "image"}}},
			}, metav1.CreateOptions{})
			if err != nil {
				panic(err)
			}
			pods[i] = p
		})
		c, b := cpu(), time.Now()
		bind(pods)
		took := time.Since(b)
		fmt.Printf("%-20s %6.0f/s cpu %s (%s each)\n", what, float64(n)/took.Seconds(), cpu()-c, (cpu()-c)/time.Duration(n))
		_ = clients.Core.CoreV1().Pods(ns).DeleteCollection(context.Background(), *metav1.NewDeleteOptions(0), metav1.ListOptions{})
	}
	typed := func(w int) func(pods []*corev1.Pod) {
		return func(pods []*corev1.Pod) {
			workqueue.ParallelizeUntil(context.Background(), w, n, func(i int) {
				err := clients.Core.CoreV1().Pods(ns).Bind(context.Background(), &corev1.Binding{
					ObjectMeta: metav1.ObjectMeta{Name: pods[i].Name, Namespace: ns, UID: pods[i].UID},
					Target:     corev1.ObjectReference{Kind: "Node", Name: "node"},
				}, metav1.CreateOptions{})
				if err != nil {
					panic(err)
				}
			})
		}
	}
	outbox := func(pods []*corev1.Pod) {
		var wg sync.WaitGroup
		wg.Add(n)
		o := NewOutbox(clients, OutboxOptions{Name: "volcano", Logger: logr.Discard(), Refuse: func(cluster.BindFailed) {},
			Observe: func(BindResult, time.Duration) { wg.Done() }})
		_ = o.Start(t.Context())
		for _, p := range pods {
			o.Do(bindOf(p, "node"))
		}
		wg.Wait()
		_ = o.Drain(t.Context())
	}
	for range 2 {
		for _, w := range []int{16, 32, 64} {
			run(fmt.Sprint("typed ", w), typed(w))
		}
		run("outbox", outbox)
	}
}
