package jobflow

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/yaml"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	flowapi "hekla.sh/hekla/pkg/apis/flow/v1alpha1"
)

const templateText = `
metadata: {name: train}
spec:
  minAvailable: 3
  queue: research
  maxRetry: 5
  policies: [{event: PodFailed, action: RestartJob}]
  plugins: {svc: [], env: []}
  volumes: [{mountPath: /data, volumeClaimName: data}]
  tasks:
  - name: master
    replicas: 1
    template:
      metadata: {labels: {role: master}}
      spec:
        nodeSelector: {disk: ssd}
        initContainers: [{name: fetch, image: fetch:1}]
        containers:
        - name: main
          image: train:1
          command: [python, train.py]
          env: [{name: DATA, value: /data}, {name: EPOCHS, value: "3"}]
          ports: [{containerPort: 80, name: web}]
          resources: {requests: {cpu: "1", memory: 1Gi}}
        tolerations: [{key: gpu, operator: Exists}]
  - name: worker
    replicas: 2
    template:
      spec: {containers: [{name: main, image: train:1}]}
`

func patchedSpec(t *testing.T, patch string) (*batch.JobSpec, error) {
	t.Helper()
	template := &flowapi.JobTemplate{}
	if err := yaml.UnmarshalStrict([]byte(templateText), template.Plain()); err != nil {
		t.Fatal(err)
	}
	content, err := yaml.YAMLToJSON([]byte(patch))
	if err != nil {
		t.Fatal(err)
	}
	flow := &flowapi.Flow{Name: "train", Patch: &flowapi.Patch{}}
	flow.Patch.JobSpec.Raw = content
	untouched := template.DeepCopy()
	spec, err := specOf(template, flow)
	if diff := cmp.Diff(untouched, template); diff != "" {
		t.Errorf("the template itself is changed:\n%s", diff)
	}
	return spec, err
}

func TestAPatchChangesWhatItNamesAndNothingElse(t *testing.T) {
	for name, test := range map[string]struct {
		patch string
		// want is the template's text, with each of these pairs replaced.
		want []string
	}{
		"a value is replaced":                    {"{minAvailable: 2, queue: production}", []string{"minAvailable: 3", "minAvailable: 2", "queue: research", "queue: production"}},
		"a zero is a value":                      {"{maxRetry: 0}", []string{"maxRetry: 5", "maxRetry: 0"}},
		"null removes":                           {"{policies: null, priorityClassName: null}", []string{"policies: [{event: PodFailed, action: RestartJob}]", ""}},
		"policies are replaced as a whole":       {"{policies: [{event: PodEvicted, action: AbortJob}]}", []string{"event: PodFailed, action: RestartJob", "event: PodEvicted, action: AbortJob"}},
		"plugins are merged by name":             {"{plugins: {svc: [--publish-not-ready-addresses], ssh: []}}", []string{"{svc: [], env: []}", "{svc: [--publish-not-ready-addresses], env: [], ssh: []}"}},
		"all plugins are replaced":               {"{plugins: {ssh: [], $patch: replace}}", []string{"{svc: [], env: []}", "{ssh: []}"}},
		"all plugins are removed":                {"{plugins: {$patch: delete}}", []string{"{svc: [], env: []}", "{}"}},
		"a plugin is removed":                    {"{plugins: {svc: null}}", []string{"{svc: [], env: []}", "{env: []}"}},
		"volumes are merged by their place":      {"{volumes: [{mountPath: /data, volumeClaimName: other}, {mountPath: /more, volumeClaimName: more}]}", []string{"{mountPath: /data, volumeClaimName: data}", "{mountPath: /data, volumeClaimName: other}, {mountPath: /more, volumeClaimName: more}"}},
		"a task is found by its name":            {"{tasks: [{name: master, replicas: 2}]}", []string{"replicas: 1", "replicas: 2"}},
		"a container is found by its name":       {"{tasks: [{name: master, template: {spec: {containers: [{name: main, image: 'train:2'}]}}}]}", []string{"image: train:1\n          command", "image: train:2\n          command"}},
		"a command is replaced as a whole":       {"{tasks: [{name: master, template: {spec: {containers: [{name: main, command: [sh]}]}}}]}", []string{"[python, train.py]", "[sh]"}},
		"resources are merged by name":           {"{tasks: [{name: master, template: {spec: {containers: [{name: main, resources: {requests: {cpu: '4'}}}]}}}]}", []string{`cpu: "1"`, `cpu: "4"`}},
		"new variables stand behind the old":     {"{tasks: [{name: master, template: {spec: {containers: [{name: main, env: [{name: NEW, value: $(DATA)}, {name: EPOCHS, value: '9'}]}]}}}]}", []string{`value: "3"}`, `value: "9"}, {name: NEW, value: $(DATA)}`}},
		"new containers stand behind the old":    {"{tasks: [{name: master, template: {spec: {initContainers: [{name: a, image: a}], containers: [{name: a, image: a}]}}}]}", []string{"{name: fetch, image: fetch:1}", "{name: fetch, image: fetch:1}, {name: a, image: a}", "memory: 1Gi}}", "memory: 1Gi}}\n        - {name: a, image: a}"}},
		"labels and selectors are merged by key": {"{tasks: [{name: master, template: {metadata: {labels: {team: red}}, spec: {nodeSelector: {disk: null, zone: a}}}}]}", []string{"{role: master}", "{role: master, team: red}", "{disk: ssd}", "{zone: a}"}},
		"ports are merged by number":             {"{tasks: [{name: master, template: {spec: {containers: [{name: main, ports: [{containerPort: 80, name: http}, {containerPort: 81}]}]}}}]}", []string{"{containerPort: 80, name: web}", "{containerPort: 80, name: http}, {containerPort: 81}"}},
		"tolerations are replaced as a whole":    {"{tasks: [{name: master, template: {spec: {tolerations: []}}}]}", []string{"[{key: gpu, operator: Exists}]", "[]"}},
		"a new task comes last":                  {"{tasks: [{name: more, replicas: 1}]}", []string{"image: train:1}]}\n", "image: train:1}]}\n  - {name: more, replicas: 1}\n"}},
		"a directive deletes an element":         {"{tasks: [{name: worker, $patch: delete}]}", []string{templateText[strings.Index(templateText, "  - name: worker"):], ""}},
		"a directive replaces a list":            {"{volumes: [{mountPath: /b, volumeClaimName: b}, {$patch: replace}]}", []string{"{mountPath: /data, volumeClaimName: data}", "{mountPath: /b, volumeClaimName: b}"}},
		"a directive gives an order": {"{tasks: [{name: master, template: {spec: {containers: [{name: main, env: [{name: EPOCHS, value: '3'}], $setElementOrder/env: [{name: EPOCHS}, {name: DATA}]}]}}}]}",
			[]string{`{name: DATA, value: /data}, {name: EPOCHS, value: "3"}`, `{name: EPOCHS, value: "3"}, {name: DATA, value: /data}`}},
		"nothing changes nothing": {"{}", nil},
	} {
		t.Run(name, func(t *testing.T) {
			text := templateText
			for i := 0; i+1 < len(test.want); i += 2 {
				if !strings.Contains(text, test.want[i]) {
					t.Fatalf("the template has no %q", test.want[i])
				}
				text = strings.Replace(text, test.want[i], test.want[i+1], 1)
			}
			want := &flowapi.JobTemplate{}
			if err := yaml.UnmarshalStrict([]byte(text), want); err != nil {
				t.Fatalf("%v in\n%s", err, text)
			}
			got, err := patchedSpec(t, test.patch)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&want.Spec, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestATaskWithoutANameGoesByItsDefaultOne(t *testing.T) {
	template := &flowapi.JobTemplate{Spec: batch.JobSpec{Tasks: []batch.TaskSpec{{Replicas: 1}, {Replicas: 2}}}}
	flow := &flowapi.Flow{Patch: &flowapi.Patch{}}
	flow.Patch.JobSpec.Raw = []byte(`{"tasks": [{"name": "default1", "replicas": 5}]}`)
	spec, err := specOf(template, flow)
	if err != nil {
		t.Fatal(err)
	}
	if len(spec.Tasks) != 2 || spec.Tasks[0].Name != "default0" || spec.Tasks[1].Name != "default1" || spec.Tasks[1].Replicas != 5 {
		t.Errorf("the tasks are %+v", spec.Tasks)
	}
}

func TestAPatchThatDoesNotFitIsRefusedWithItsPlace(t *testing.T) {
	for patch, want := range map[string]string{
		"{quue: a}":    `patch.jobSpec: unknown field "quue"`,
		"{quue: null}": `patch.jobSpec: unknown field "quue"`,
		"{tasks: [{name: master, template: {spec: {container: []}}}]}": `patch.jobSpec: unknown field "tasks[0].template.spec.container"`,
		"{minAvailable: two}":                       "patch.jobSpec: json: cannot unmarshal string into Go struct field JobSpec.minAvailable",
		"{tasks: [{name: master}, {replicas: 2}]}":  "patch.jobSpec.tasks[1].name: required",
		"{tasks: {name: master}}":                   "patch.jobSpec: json: cannot unmarshal object into Go struct field JobSpec.tasks",
		"{plugins: [svc]}":                          "patch.jobSpec: json: cannot unmarshal array into Go struct field JobSpec.plugins",
		"{plugins: {svc: --all}}":                   "patch.jobSpec: json: cannot unmarshal string into Go struct field JobSpec.plugins",
		"[queue]":                                   "patch.jobSpec: json: cannot unmarshal array",
		"{tasks: [{name: master, $patch: forget}]}": "patch.jobSpec: ",
		"{tasks: [{name: master, template: {spec: {containers: [{image: a}]}}}]}": "patch.jobSpec: map: map[image:a] does not contain declared merge key: name",
	} {
		if spec, err := patchedSpec(t, patch); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v (%v), want %q", patch, err, spec, want)
		}
	}
}

func TestAMergeIsDoneAgainWhenTemplateOrPatchHaveChanged(t *testing.T) {
	s := newSpecs()
	template := templateOf("a", batch.TaskSpec{Name: "main", Replicas: 1})
	template.UID, template.ResourceVersion = "1", "1"
	flow := &flowapi.Flow{Name: "a", Patch: &flowapi.Patch{}}
	flow.Patch.JobSpec.Raw = []byte(`{"queue": "q"}`)
	ask := func() *batch.JobSpec {
		spec, err := s.specOf(template, flow)
		if err != nil {
			t.Fatal(err)
		}
		return spec
	}
	first := ask()
	if ask() != first || first.Queue != "q" {
		t.Errorf("the same question is answered by %+v and %+v", first, ask())
	}
	template.Spec.Tasks[0].Replicas, template.ResourceVersion = 2, "2"
	if got := ask(); got.Tasks[0].Replicas != 2 {
		t.Errorf("the template as it was: %+v", got)
	}
	flow.Patch.JobSpec.Raw = []byte(`{"queue": "r"}`)
	if got := ask(); got.Queue != "r" {
		t.Errorf("the patch as it was: %+v", got)
	}
	flow.Patch.JobSpec.Raw = []byte(`{"nonsense": 1}`)
	for range 2 {
		if _, err := s.specOf(template, flow); err == nil {
			t.Error("nonsense is accepted")
		}
	}
	job := buildJob(jobFlowOf(*flow), "a", first)
	job.Spec.Tasks[0].Replicas = 9
	if first.Tasks[0].Replicas == 9 {
		t.Error("a Job shares its spec with what is remembered")
	}
}
