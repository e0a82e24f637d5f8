package testbed

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"hekla.sh/hekla/internal/localcluster"
)

const (
	// The cluster is at rest when its processes together use less than restCPUs of one CPU for restTime. Heartbeats of
	// a thousand nodes take a tenth of that.
	restCPUs = 0.2
	restTime = 3 * time.Second
	// restPatience bounds the wait for it.
	restPatience = 3 * time.Minute

	// countPatience bounds the wait until the API server has counted the requests that it has answered.
	countPatience = 5 * time.Second
)

// Usage is what was used up to a moment: CPU in seconds, memory in bytes.
type Usage struct {
	ControlPlane float64
	Process      float64 // of the contender's own process
	Memory       uint64  // of the same, resident now
	PeakMemory   uint64  // of the same
	Own          float64 // of the benchmark's process
	Other        float64 // of everything on the machine that has no part in the benchmark
}

// All is the CPU time of the whole machine, in seconds.
func (u *Usage) All() float64 { return u.ControlPlane + u.Process + u.Own + u.Other }

// Usage reads the meters. process may be nil.
func (t *Testbed) Usage(process *localcluster.Process) (Usage, error) {
	var u Usage
	for _, p := range t.controlPlane {
		seconds, err := t.cpuSeconds(p.PID)
		if err != nil {
			return Usage{}, fmt.Errorf("CPU time of %s: %w; its log is %s", p.Name, err, p.LogPath)
		}
		u.ControlPlane += seconds
	}
	var err error
	if u.Own, err = t.cpuSeconds(os.Getpid()); err != nil {
		return Usage{}, fmt.Errorf("CPU time of the benchmark: %w", err)
	}
	if process != nil {
		if u.Process, err = t.cpuSeconds(process.PID); err != nil {
			return Usage{}, fmt.Errorf("CPU time of %s: %w; its log is %s", process.Name, err, process.LogPath)
		}
		if u.Memory, u.PeakMemory, err = t.memory(process.PID); err != nil {
			return Usage{}, fmt.Errorf("memory of %s: %w", process.Name, err)
		}
	}
	stat, err := t.proc.Stat()
	if err != nil {
		return Usage{}, fmt.Errorf("CPU time of the machine: %w", err)
	}
	total := stat.CPUTotal
	u.Other = total.User + total.Nice + total.System + total.IRQ + total.SoftIRQ + total.Steal - u.ControlPlane - u.Process - u.Own
	return u, nil
}

// cpuSeconds returns what a process has used, in user and system mode.
func (t *Testbed) cpuSeconds(pid int) (float64, error) {
	process, err := t.proc.Proc(pid)
	if err != nil {
		return 0, err
	}
	stat, err := process.Stat()
	return stat.CPUTime(), err
}

// memory returns how much of a process is resident, and the most that was.
func (t *Testbed) memory(pid int) (now, peak uint64, err error) {
	process, err := t.proc.Proc(pid)
	if err != nil {
		return 0, 0, err
	}
	status, err := process.NewStatus()
	return status.VmRSS, status.VmHWM, err
}

// Rest returns when the cluster has nothing left to do.
func (t *Testbed) Rest(ctx context.Context) error {
	before, err := t.Usage(nil)
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(restPatience); time.Now().Before(deadline); {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(restTime):
		}
		now, err := t.Usage(nil)
		if err != nil {
			return err
		}
		if now.ControlPlane-before.ControlPlane < restCPUs*restTime.Seconds() {
			return nil
		}
		before = now
	}
	return fmt.Errorf("the cluster did not come to rest within %s: its processes still use more than %.1f CPUs", restPatience, restCPUs)
}

// Writes are requests that change something, by what they ask for: "POST pods/binding 201".
type Writes map[string]int

// Total returns the number of all requests.
func (w Writes) Total() (sum int) {
	for _, count := range w {
		sum += count
	}
	return sum
}

// Of returns the number of requests about a resource, such as "pods/binding", whatever became of them.
func (w Writes) Of(resource string) (sum int) {
	for request, count := range w {
		if fields := strings.Fields(request); len(fields) > 1 && fields[1] == resource {
			sum += count
		}
	}
	return sum
}

// Refused names the requests that the API server has refused for what they ask. That another client was faster (409),
// that an object is gone meanwhile (404), or that there is too much to do (429) may happen to a client that does
// nothing wrong.
func (w Writes) Refused() []string {
	var refused []string
	for _, request := range slices.Sorted(maps.Keys(w)) {
		code := request[strings.LastIndexByte(request, ' ')+1:]
		if strings.HasPrefix(code, "4") && !slices.Contains([]string{"404", "409", "429"}, code) {
			refused = append(refused, fmt.Sprintf("the API server refused %d times: %s", w[request], request))
		}
	}
	return refused
}

// Since returns what came after the earlier reading.
func (w Writes) Since(earlier Writes) Writes {
	difference := make(Writes)
	for request, count := range w {
		if count -= earlier[request]; count > 0 {
			difference[request] = count
		}
	}
	return difference
}

// Writes returns the requests of all clients that the API server has counted so far.
func (t *Testbed) Writes(ctx context.Context) (Writes, error) {
	text, err := t.Clients.Core.CoreV1().RESTClient().Get().AbsPath("/metrics").Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("read the metrics of the API server: %w", err)
	}
	return parseWrites(string(text))
}

// WritesOfBindings returns what came after an earlier reading, so many bindings among it. The API server counts a
// request after it has answered it, and a watch may show a pod's node before: it waits for the count up to
// countPatience.
func (t *Testbed) WritesOfBindings(ctx context.Context, earlier Writes, bindings int) (Writes, error) {
	for deadline := time.Now().Add(countPatience); ; {
		now, err := t.Writes(ctx)
		if err != nil {
			return nil, err
		}
		if since := now.Since(earlier); since[BindingRequest] >= bindings || time.Now().After(deadline) {
			return since, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(countPatience / 20):
		}
	}
}

// requestMetric is the API server's own count of the requests it has answered.
const requestMetric = "apiserver_request_total"

// parseWrites finds the requests that are no reads among the metrics of an API server.
func parseWrites(metrics string) (Writes, error) {
	var counts strings.Builder
	for line := range strings.Lines(metrics) {
		// The rest is megabytes of histograms.
		if strings.HasPrefix(line, requestMetric+"{") {
			counts.WriteString(line)
		}
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(counts.String()))
	if err != nil {
		return nil, fmt.Errorf("understand the metrics of the API server: %w", err)
	}
	writes := make(Writes)
	for _, metric := range families[requestMetric].GetMetric() {
		labels := make(map[string]string)
		for _, label := range metric.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		if slices.Contains([]string{"GET", "LIST", "WATCH", "CONNECT"}, labels["verb"]) {
			continue
		}
		resource := strings.TrimSuffix(labels["resource"]+"/"+labels["subresource"], "/")
		writes[labels["verb"]+" "+resource+" "+labels["code"]] += int(metric.GetUntyped().GetValue())
	}
	return writes, nil
}

// Ratio is 0 of what was not measured.
func Ratio(of, to float64) float64 {
	if to == 0 {
		return 0
	}
	return of / to
}

// Mebibytes returns a size in MiB.
func Mebibytes(bytes float64) float64 { return bytes / (1 << 20) }
