package apis_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"hekla.sh/hekla/pkg/apis"
	batchv1alpha1 "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/apis/bounds"
	kueuev1beta1 "hekla.sh/hekla/pkg/apis/kueue/v1beta1"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

func TestManifestsOfUsersAreAcceptedUnchanged(t *testing.T) {
	definitions := loadDefinitions(t)
	for _, manifest := range readManifests(t) {
		object := parse(t, manifest)
		t.Run(title(object), func(t *testing.T) {
			kind, _ := object["kind"].(string)
			_, unknown, errs := definitions[kind].create(object)
			if len(unknown) > 0 {
				t.Errorf("fields the schema does not know: %v", unknown)
			}
			if err := errs.ToAggregate(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestManifestsSurviveDecodingAndEncoding(t *testing.T) {
	scheme := newScheme(t)
	codecs := serializer.NewCodecFactory(scheme, serializer.EnableStrict)
	for _, manifest := range readManifests(t) {
		t.Run(title(parse(t, manifest)), func(t *testing.T) {
			typed, _, err := codecs.UniversalDeserializer().Decode([]byte(manifest), nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			// A kind that decodes itself hides fields that it does not know from a decoder that is strict.
			if err := yaml.UnmarshalStrict([]byte(manifest), typed.DeepCopyObject().(bounds.Strict).Plain()); err != nil {
				t.Fatal(err)
			}
			content, err := runtime.Encode(codecs.LegacyCodec(scheme.PrioritizedVersionsAllGroups()...), typed)
			if err != nil {
				t.Fatal(err)
			}
			again, _, err := codecs.UniversalDeserializer().Decode(content, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			// A kind with two versions is written in the newer one.
			typed.GetObjectKind().SetGroupVersionKind(again.GetObjectKind().GroupVersionKind())
			if !equality.Semantic.DeepEqual(typed, again) {
				t.Errorf("changed by encoding:\n%s", cmp.Diff(typed, again))
			}
			if !equality.Semantic.DeepEqual(typed, typed.DeepCopyObject()) {
				t.Error("a deep copy differs")
			}
		})
	}
}

func TestDefaultsOfTheSchemaAreThoseOfVolcano(t *testing.T) {
	definitions := loadDefinitions(t)
	job := &batchv1alpha1.Job{}
	convert(t, definitions["Job"], `
metadata: {name: a}
spec:
  networkTopology: {}
  tasks:
  - replicas: 1
    partitionPolicy: {totalPartitions: 1, partitionSize: 1}
    template: {spec: {containers: [{name: a, image: b, ports: [{containerPort: 1}]}]}}`, job)
	queue := &schedulingv1beta1.Queue{}
	convert(t, definitions["Queue"], `metadata: {name: a}`, queue)
	group := &schedulingv1beta1.PodGroup{}
	convert(t, definitions["PodGroup"], `metadata: {name: a}`, group)

	cronJob := &batchv1alpha1.CronJob{}
	convert(t, definitions["CronJob"], `
metadata: {name: a}
spec:
  schedule: "@daily"
  jobTemplate: {spec: {tasks: [{replicas: 1, template: {spec: {containers: [{name: a, image: b}]}}}]}}`, cronJob)

	yes, no, one, three := true, false, int32(1), int32(3)
	wantCronJob := batchv1alpha1.CronJobSpec{
		Schedule: "@daily", ConcurrencyPolicy: batchv1alpha1.AllowConcurrent, Suspend: &no,
		SuccessfulJobsHistoryLimit: &three, FailedJobsHistoryLimit: &one,
	}
	if diff := cmp.Diff(wantCronJob, cronJob.Spec, cmpopts.IgnoreFields(batchv1alpha1.CronJobSpec{}, "JobTemplate")); diff != "" {
		t.Errorf("cron job (-want +got):\n%s", diff)
	}
	if template := cronJob.Spec.JobTemplate.Spec; template.Queue != "default" || template.MaxRetry != 3 {
		t.Errorf("the template of the cron job has not the defaults of a job: %+v", template)
	}
	wantQueue := schedulingv1beta1.QueueSpec{Weight: 1, Reclaimable: &yes, DequeueStrategy: "traverse"}
	if diff := cmp.Diff(wantQueue, queue.Spec); diff != "" {
		t.Errorf("queue (-want +got):\n%s", diff)
	}
	// A minMember that a controller leaves out, or writes as 0, stays so: one that compares would write it for ever.
	wantGroup := schedulingv1beta1.PodGroupSpec{Queue: "default"}
	if diff := cmp.Diff(wantGroup, group.Spec); diff != "" {
		t.Errorf("pod group (-want +got):\n%s", diff)
	}
	// By which names the scheduler goes no schema knows.
	wantJob := batchv1alpha1.JobSpec{
		Queue: "default", MaxRetry: 3,
		NetworkTopology: &batchv1alpha1.NetworkTopologySpec{Mode: batchv1alpha1.HardNetworkTopologyMode},
		Tasks: []batchv1alpha1.TaskSpec{{
			Replicas:        1,
			PartitionPolicy: &batchv1alpha1.PartitionPolicySpec{TotalPartitions: 1, PartitionSize: 1},
		}},
	}
	if diff := cmp.Diff(wantJob, job.Spec, cmpopts.IgnoreFields(batchv1alpha1.TaskSpec{}, "Template")); diff != "" {
		t.Errorf("job (-want +got):\n%s", diff)
	}
}

// convert creates an object from YAML and reads back what would be stored.
func convert(t *testing.T, d *definition, text string, into any) {
	t.Helper()
	stored, _, errs := d.create(parse(t, text))
	if err := errs.ToAggregate(); err != nil {
		t.Fatal(err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(stored, into); err != nil {
		t.Fatal(err)
	}
}

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(apis.AddToScheme(scheme), kueuev1beta1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return scheme
}

// readManifests returns the documents of all files in testdata.
func readManifests(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files in testdata: %v", len(files), err)
	}
	var documents []string
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, splitDocuments(t, content)...)
	}
	return documents
}

func splitDocuments(t *testing.T, content []byte) (documents []string) {
	t.Helper()
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return documents
		}
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, string(document))
	}
}

// title names an object by kind and name.
func title(object map[string]any) string {
	described := unstructured.Unstructured{Object: object}
	return described.GetKind() + " " + described.GetName() + described.GetGenerateName()
}
