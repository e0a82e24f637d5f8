package job

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"hekla.sh/hekla/internal/cli/session"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

const (
	// DefaultImage is the image of a job that is made from flags, and DefaultScheduler its scheduler, as with vcctl.
	DefaultImage     = "busybox"
	DefaultScheduler = scheduling.DefaultSchedulerName
	defaultResources = "cpu=1000m,memory=100Mi"

	// jobLabel is put onto the pods of a job that is made from flags; scripts select by it.
	jobLabel = "job.volcano.sh"
)

// RunDefaults are those that vsub takes from the environment.
type RunDefaults struct{ Image, Scheduler string }

// runFlags describe a job without a manifest.
type runFlags struct {
	image, requests, limits, scheduler, filename, queue, priorityClass, command string

	minAvailable, replicas int64
}

// NewRunCommand returns job run, with the defaults of the program and its shorthands.
func NewRunCommand(s *session.Session, defaults RunDefaults, letters session.Shorthands) *cobra.Command {
	var f runFlags
	command := &cobra.Command{
		Use: "run [NAME]", Short: "Run a job: from a file, or of one task from flags", Args: cobra.MaximumNArgs(1),
		Example: "  " + s.Program + " job run -f job.yaml\n  " + s.Program + ` job run train -i trainer:1 -r 4 -m 4 -R cpu=2,memory=4Gi -L "" -c "python train.py"`,
		RunE: func(command *cobra.Command, arguments []string) error {
			if f.filename != "" {
				warnOfUnused(s, command)
				return runFile(command.Context(), s, f.filename, arguments)
			}
			return runJob(command.Context(), s, f, arguments)
		},
	}
	flags := command.Flags()
	flags.StringVarP(&f.image, "image", "i", defaults.Image, "container image")
	flags.Int64VarP(&f.minAvailable, "min", "m", 1, "how many pods must start together")
	flags.Int64VarP(&f.replicas, "replicas", "r", 1, "how many pods to run")
	flags.StringVarP(&f.requests, "requests", "R", defaultResources, "what each pod requests")
	flags.StringVarP(&f.limits, "limits", "L", defaultResources, `what each pod is limited to; "" does not limit it`)
	flags.StringVarP(&f.scheduler, "scheduler", "S", defaults.Scheduler, "scheduler")
	flags.StringVarP(&f.filename, "filename", "f", "", "file with jobs to run, - for the standard input")
	flags.StringVarP(&f.queue, "queue", "q", "", `queue; without it "default"`)
	flags.StringVar(&f.priorityClass, "priority-class", "", "PriorityClass")
	flags.StringVarP(&f.command, "command", "c", "", "command to run instead of the image's, as words of a shell")
	s.AddNamespaceFlag(command, letters)
	s.AddNameFlag(command, letters.Name, "name of the job")
	s.AddDryRunFlag(command)
	s.AddOutputFlag(command, "")
	_ = command.RegisterFlagCompletionFunc("queue", s.CompleteQueues)
	return command
}

// podFlags are those that describe a job, and have no effect where a file does.
var podFlags = []string{"image", "min", "replicas", "requests", "limits", "scheduler", "queue", "priority-class", "command"}

// warnOfUnused says which flags have no effect together with a file. vcctl leaves them unused as well, so this is no
// error.
func warnOfUnused(s *session.Session, command *cobra.Command) {
	for _, name := range podFlags {
		if command.Flags().Changed(name) {
			_, _ = fmt.Fprintf(s.ErrOut, "Warning: --%s has no effect, the file says it all\n", name)
		}
	}
}

// runFile runs the jobs of a file, or checks that it has the one that is named.
func runFile(ctx context.Context, s *session.Session, path string, arguments []string) error {
	objects, err := s.ReadObjects(path, session.JobKind)
	if err != nil {
		return err
	}
	if s.Name != "" || len(arguments) > 0 {
		names, err := s.Names("job", arguments)
		if err != nil {
			return err
		}
		if len(objects) != 1 || objects[0].GetName() != names[0] {
			return fmt.Errorf("%s has other jobs than %q; leave out the name, or correct it", path, names[0])
		}
	}
	return s.CreateAll(ctx, objects, func(o *unstructured.Unstructured) string {
		return fmt.Sprintf("run job %s successfully", o.GetName())
	})
}

func runJob(ctx context.Context, s *session.Session, f runFlags, arguments []string) error {
	if s.Name == "" && len(arguments) == 0 {
		return errors.New("a job needs a name, as an argument or by --name, or a file, by --filename")
	}
	names, err := s.Names("job", arguments)
	if err != nil {
		return err
	}
	namespace, err := s.Namespace()
	if err != nil {
		return err
	}
	job, err := f.job(namespace, names[0])
	if err != nil {
		return err
	}
	return s.Create(ctx, job, fmt.Sprintf("run job %s successfully", job.Name))
}

// job is what the flags describe.
func (f *runFlags) job(namespace, name string) (*batch.Job, error) {
	requests, err := session.ParseResources("--requests", f.requests)
	if err != nil {
		return nil, err
	}
	limits, err := session.ParseResources("--limits", f.limits)
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
