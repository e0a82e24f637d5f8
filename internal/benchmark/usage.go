package benchmark

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
	// The cluster is at rest when its processes together use less than restCPUs of one CPU for restTime. Heartbeats of a
	// thousand nodes take a tenth of that.
	restCPUs = 0.2
	restTime = 3 * time.Second
	// restPatience bounds the wait for it.
	restPatience = 3 * time.Minute
)

// usage is what was used up to a moment: CPU in seconds, memory in bytes.
type usage struct {
	controlPlane float64
	process      float64 // of the contender's own process
	peakMemory   uint64  // of the same
	other        float64 // of everything on the machine that has no part in the benchmark
}

// usage reads the meters. process may be nil.
func (b *bench) usage(process *localcluster.Process) (usage, error) {
	var u usage
	for _, p := range b.controlPlane {
		seconds, err := b.cpuSeconds(p.PID)
		if err != nil {
			return usage{}, fmt.Errorf("CPU time of %s: %w; its log is %s", p.Name, err, p.LogPath)
		}
		u.controlPlane += seconds
	}
	own, err := b.cpuSeconds(os.Getpid())
	if err != nil {
		return usage{}, fmt.Errorf("CPU time of the benchmark: %w", err)
	}
	if process != nil {
		if u.process, err = b.cpuSeconds(process.PID); err != nil {
			return usage{}, fmt.Errorf("CPU time of %s: %w; its log is %s", process.Name, err, process.LogPath)
		}
		if u.peakMemory, err = b.peakMemory(process.PID); err != nil {
			return usage{}, fmt.Errorf("memory of %s: %w", process.Name, err)
		}
	}
	stat, err := b.proc.Stat()
	if err != nil {
		return usage{}, fmt.Errorf("CPU time of the machine: %w", err)
	}
	t := stat.CPUTotal
	u.other = t.User + t.Nice + t.System + t.IRQ + t.SoftIRQ + t.Steal - u.controlPlane - u.process - own
	return u, nil
}

// cpuSeconds returns what a process has used, in user and system mode.
func (b *bench) cpuSeconds(pid int) (float64, error) {
	process, err := b.proc.Proc(pid)
	if err != nil {
		return 0, err
	}
	stat, err := process.Stat()
	return stat.CPUTime(), err
}

func (b *bench) peakMemory(pid int) (uint64, error) {
	process, err := b.proc.Proc(pid)
	if err != nil {
		return 0, err
	}
	status, err := process.NewStatus()
	return status.VmHWM, err
}

// rest returns when the cluster has nothing left to do.
func (b *bench) rest(ctx context.Context) error {
	before, err := b.usage(nil)
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(restPatience); time.Now().Before(deadline); {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(restTime):
		}
		now, err := b.usage(nil)
		if err != nil {
			return err
		}
		if now.controlPlane-before.controlPlane < restCPUs*restTime.Seconds() {
			return nil
		}
		before = now
	}
	return fmt.Errorf("the cluster did not come to rest within %s: its processes still use more than %.1f CPUs", restPatience, restCPUs)
}

// Writes are requests that change something, by what they ask for: "POST pods/binding 201".
type Writes map[string]int

// total returns the number of all requests.
func (w Writes) total() (sum int) {
	for _, count := range w {
		sum += count
	}
	return sum
}

// refused names the requests that the API server has refused for what they ask. That another client was faster (409), that an
// object is gone meanwhile (404), or that there is too much to do (429) may happen to a client that does nothing wrong.
func (w Writes) refused() []string {
	var refused []string
	for _, request := range slices.Sorted(maps.Keys(w)) {
		code := request[strings.LastIndexByte(request, ' ')+1:]
		if strings.HasPrefix(code, "4") && !slices.Contains([]string{"404", "409", "429"}, code) {
			refused = append(refused, fmt.Sprintf("the API server refused %d times: %s", w[request], request))
		}
	}
	return refused
}

// since returns what came after the earlier reading.
func (w Writes) since(earlier Writes) Writes {
	difference := make(Writes)
	for request, count := range w {
		if count -= earlier[request]; count > 0 {
			difference[request] = count
		}
	}
	return difference
}

// writes returns the requests of all clients that the API server has counted so far.
func (b *bench) writes(ctx context.Context) (Writes, error) {
	text, err := b.clients.Core.CoreV1().RESTClient().Get().AbsPath("/metrics").Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("read the metrics of the API server: %w", err)
	}
	return parseWrites(string(text))
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
