package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/apis/bounds"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

const (
	defaultImage     = "busybox"
	defaultScheduler = scheduling.DefaultSchedulerName
	defaultResources = "cpu=1000m,memory=100Mi"

	// jobLabel is put onto the pods of a job that is made from flags; scripts select by it.
	jobLabel = "job.volcano.sh"
)

// runDefaults are those that vsub takes from the environment.
type runDefaults struct{ image, scheduler string }

// runFlags describe a job without a manifest.
type runFlags struct {
	image, requests, limits, scheduler, filename, queue, priorityClass, command string

	minAvailable, replicas int64
}

func newJobRunCommand(s *session, defaults runDefaults, letters shorthands) *cobra.Command {
	var f runFlags
	command := &cobra.Command{
		Use: "run [NAME]", Short: "Run a job: from a file, or of one task from flags", Args: cobra.MaximumNArgs(1),
		Example: "  " + s.program + " job run -f job.yaml\n  " + s.program + ` job run train -i trainer:1 -r 4 -m 4 -R cpu=2,memory=4Gi -L "" -c "python train.py"`,
		RunE: func(command *cobra.Command, arguments []string) error {
			if f.filename != "" {
				s.warnOfUnused(command)
				return s.runFile(command.Context(), f.filename, arguments)
			}
			return runJob(command.Context(), s, f, arguments)
		},
	}
	flags := command.Flags()
	flags.StringVarP(&f.image, "image", "i", defaults.image, "container image")
	flags.Int64VarP(&f.minAvailable, "min", "m", 1, "how many pods must start together")
	flags.Int64VarP(&f.replicas, "replicas", "r", 1, "how many pods to run")
	flags.StringVarP(&f.requests, "requests", "R", defaultResources, "what each pod requests")
	flags.StringVarP(&f.limits, "limits", "L", defaultResources, `what each pod is limited to; "" does not limit it`)
	flags.StringVarP(&f.scheduler, "scheduler", "S", defaults.scheduler, "scheduler")
	flags.StringVarP(&f.filename, "filename", "f", "", "file with jobs to run, - for the standard input")
	flags.StringVarP(&f.queue, "queue", "q", "", `queue; without it "default"`)
	flags.StringVar(&f.priorityClass, "priority-class", "", "PriorityClass")
	flags.StringVarP(&f.command, "command", "c", "", "command to run instead of the image's, as words of a shell")
	s.addNamespaceFlag(command, letters)
	s.addNameFlag(command, letters.name, "name of the job")
	s.addDryRunFlag(command)
	s.addOutputFlag(command, "")
	_ = command.RegisterFlagCompletionFunc("queue", s.completeQueues)
	return command
}

// podFlags are those that describe a job, and have no effect where a file does.
var podFlags = []string{"image", "min", "replicas", "requests", "limits", "scheduler", "queue", "priority-class", "command"}

// warnOfUnused says which flags have no effect beside a file. vcctl leaves them unused as well, so this is no error.
func (s *session) warnOfUnused(command *cobra.Command) {
	for _, name := range podFlags {
		if command.Flags().Changed(name) {
			_, _ = fmt.Fprintf(s.ErrOut, "Warning: --%s has no effect, the file says it all\n", name)
		}
	}
}

// runFile runs the jobs of a file, or checks that it has the one that is named.
func (s *session) runFile(ctx context.Context, path string, arguments []string) error {
	objects, err := s.readObjects(path, jobKind)
	if err != nil {
		return err
	}
	if s.name != "" || len(arguments) > 0 {
		names, err := s.names("job", arguments)
		if err != nil {
			return err
		}
		if len(objects) != 1 || objects[0].GetName() != names[0] {
			return fmt.Errorf("%s has other jobs than %q; leave out the name, or correct it", path, names[0])
		}
	}
	return s.createAll(ctx, objects, func(o *unstructured.Unstructured) string {
		return fmt.Sprintf("run job %s successfully", o.GetName())
	})
}

func runJob(ctx context.Context, s *session, f runFlags, arguments []string) error {
	if s.name == "" && len(arguments) == 0 {
		return errors.New("a job needs a name, as an argument or by --name, or a file, by --filename")
	}
	names, err := s.names("job", arguments)
	if err != nil {
		return err
	}
	namespace, err := s.namespace()
	if err != nil {
		return err
	}
	job, err := f.job(namespace, names[0])
	if err != nil {
		return err
	}
	return s.create(ctx, job, fmt.Sprintf("run job %s successfully", job.Name))
}

// job is what the flags describe.
func (f *runFlags) job(namespace, name string) (*batch.Job, error) {
	requests, err := parseResources("--requests", f.requests)
	if err != nil {
		return nil, err
	}
	limits, err := parseResources("--limits", f.limits)
	if err != nil {
		return nil, err
	}
	words, err := splitWords(f.command)
	if err != nil {
		return nil, fmt.Errorf("--command: %w", err)
	}
	for flag, value := range map[string]int64{"min": f.minAvailable, "replicas": f.replicas} {
		if value != int64(int32(value)) {
			return nil, fmt.Errorf("--%s=%d is no number of pods: at most %d", flag, value, math.MaxInt32)
		}
	}
	if f.minAvailable > f.replicas {
		return nil, fmt.Errorf("--min=%d pods must start together, but --replicas=%d run at all; raise --replicas or lower --min", f.minAvailable, f.replicas)
	}
	return &batch.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: batch.JobSpec{
			MinAvailable: int32(f.minAvailable), SchedulerName: f.scheduler, Queue: f.queue, PriorityClassName: f.priorityClass,
			Tasks: []batch.TaskSpec{{
				Replicas: int32(f.replicas),
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{jobLabel: name}},
					Spec: corev1.PodSpec{
						RestartPolicy: corev1.RestartPolicyNever,
						Containers: []corev1.Container{{
							Name: name, Image: f.image, ImagePullPolicy: corev1.PullIfNotPresent, Command: words,
							Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits},
						}},
					},
				},
			}},
		},
	}, nil
}

// parseResources reads cpu=1,memory=1Gi.
func parseResources(flag, text string) (corev1.ResourceList, error) {
	if text == "" {
		return nil, nil
	}
	list := corev1.ResourceList{}
	for part := range strings.SplitSeq(text, ",") {
		name, amount, ok := strings.Cut(part, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("%s=%s: %q is not of the form RESOURCE=AMOUNT, such as cpu=2", flag, text, part)
		}
		quantity, err := bounds.ParseQuantity(amount)
		if err != nil {
			return nil, fmt.Errorf("%s=%s: %q is not an amount, such as 500m, 2 or 4Gi", flag, text, amount)
		}
		if quantity.Sign() < 0 {
			return nil, fmt.Errorf("%s=%s: %s is negative", flag, text, amount)
		}
		if _, isThere := list[corev1.ResourceName(name)]; isThere {
			return nil, fmt.Errorf("%s=%s: %s is there twice", flag, text, name)
		}
		list[corev1.ResourceName(name)] = quantity
	}
	return list, nil
}

// jobKind is the kind that job run -f takes.
var jobKind = batch.SchemeGroupVersion.WithKind("Job")
