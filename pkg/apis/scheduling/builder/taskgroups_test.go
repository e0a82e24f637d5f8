package builder

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/apis/yunikorn"
	"hekla.sh/hekla/test/fixture"
)

// driver is the first pod of an application with some task groups.
func driver(groups, parameters string) *corev1.Pod {
	pod := fixture.LonePod(map[string]string{yunikorn.TaskGroupsKey: groups, yunikorn.GangParametersKey: parameters, yunikorn.TaskGroupNameKey: "driver"})
	pod.Labels = map[string]string{yunikorn.AppIDKey: "a"}
	return pod
}

const twoGroups = `[{"name": "driver", "minMember": 1, "minResource": {"cpu": "1", "pods": "1"}}, {"name": "executor", "minMember": 3, "minResource": {"cpu": "2"}}]`

func TestTaskGroupsMakeAGang(t *testing.T) {
	t.Run("each group is a role with a minimum", func(t *testing.T) {
		first := driver(twoGroups, "placeholderTimeoutInSeconds=30")
		group, problems := ApplicationGroup(first, Surroundings{})
		if len(problems) > 0 || group.Spec.MinMember != 4 || group.Spec.MinTaskMember["driver"] != 1 || group.Spec.MinTaskMember["executor"] != 3 {
			t.Errorf("it is %+v, %v", group.Spec, problems)
		}
		if needed := group.Spec.MinResources; needed.Cpu().Value() != 7 || needed.Pods().Value() != 4 {
			t.Errorf("it needs %v", needed)
		}
		if group.Annotations[yunikorn.TaskGroupsKey] != twoGroups || group.Annotations[yunikorn.GangParametersKey] != "placeholderTimeoutInSeconds=30" {
			t.Errorf("the scheduler reads %v", group.Annotations)
		}
		if role, problem := TaskGroupRole(first, group); role != "driver" || problem != "" {
			t.Errorf("its role is %q, %s", role, problem)
		}
		first.Annotations[yunikorn.TaskGroupNameKey] = "other"
		if role, problem := TaskGroupRole(first, group); role != "other" || !strings.Contains(problem, `no task group "other"`) {
			t.Errorf("its role is %q, %s", role, problem)
		}
		first.Annotations[batch.TaskSpecKey] = "master"
		if role, problem := TaskGroupRole(first, group); role != "" || problem != "" {
			t.Errorf("a role that is written is replaced by %q, %s", role, problem)
		}
	})
	t.Run("those that cannot be read make none", func(t *testing.T) {
		group, problems := ApplicationGroup(driver(`[{"name": "driver"}]`, "gangSchedulingStyle=Hard"), Surroundings{})
		if len(problems) != 1 || strings.Contains(problems[0], "\n") || !strings.Contains(problems[0], "minMember is 0") {
			t.Errorf("the problems are %q", problems)
		}
		if _, has := group.Annotations[yunikorn.TaskGroupsKey]; has || group.Spec.MinMember != 1 || group.Spec.MinTaskMember != nil {
			t.Errorf("it is %+v", group)
		}
	})
	t.Run("an application that begins again has its own", func(t *testing.T) {
		current, _ := ApplicationGroup(driver(twoGroups, "gangSchedulingStyle=Hard"), Surroundings{})
		current.Annotations["by"] = "others"
		wanted, _ := ApplicationGroup(driver("", ""), Surroundings{})
		renewed := Renew(current, wanted)
		_, has := renewed.Annotations[yunikorn.TaskGroupsKey]
		if _, hasToo := renewed.Annotations[yunikorn.GangParametersKey]; has || hasToo || renewed.Spec.MinMember != 1 || renewed.Annotations["by"] != "others" {
			t.Errorf("it is %+v", renewed)
		}
	})
}
