// The answers of answers.hekla.sh/v1alpha1, as far as the page reads them. The Go packages internal/answers/api, internal/answers/board,
// internal/explain and internal/journal say what the fields mean.

export interface List<T> {
  token: string;
  whole: boolean;
  rows: T[];
  gone?: string[];
}

export interface JobRow {
  job: string;
  kind: "PodGroup" | "Workload";
  name: string;
  owner?: string;
  queue: string;
  localQueue?: string;
  state: "Pending" | "Admitted" | "Running" | "Finished" | "Foreign";
  priority: number;
  minAvailable: number;
  lacks: number;
  pods: number;
  reason?: string;
  message?: string;
  created: string;
  requests?: number[];
}
export interface JobCounts {
  pending: number;
  admitted: number;
  running: number;
  finished: number;
  foreign: number;
}
export interface Jobs extends List<JobRow> {
  resources: string[];
  others: JobCounts;
  otherNamespaces: number;
}

export interface QueueRow {
  queue: string;
  parent?: string;
  state: string;
  problem?: string;
  priority: number;
  weight: number;
  guarantee?: number[];
  deserved?: number[];
  ceiling?: number[];
  holds?: number[];
  requests?: number[];
  borrowed?: number[];
  waiting?: number[];
  notEnforced?: string;
  pending: number;
  admitted: number;
  running: number;
  oldest?: string;
}
export interface Queues extends List<QueueRow> {
  resources: string[];
}

export interface FlavorQuota {
  flavor: string;
  resource: string;
  quota: number;
  used: number;
  borrowed?: number;
  lent?: number;
  available: number;
}
export interface QuotaRow {
  kind: "ClusterQueue" | "Cohort";
  name: string;
  parent?: string;
  inactive?: string;
  share?: number;
  flavors?: FlavorQuota[];
  waiting?: number[];
  pending: number;
  admitted: number;
  running: number;
  oldest?: string;
}
export interface Quotas extends List<QuotaRow> {
  resources: string[];
}
export interface LocalQueueRow {
  localQueue: string;
  clusterQueue: string;
  problem?: string;
  pending: number;
  admitted: number;
  running: number;
  oldest?: string;
}
export interface LocalQueues extends List<LocalQueueRow> {
  others: number;
}

export interface NodeRow {
  node: string;
  ready: boolean;
  unschedulable?: boolean;
  hyperNode?: string;
  pods: number;
  allocatable?: number[];
  used?: number[];
  leaving?: number[];
  promised?: number[];
  idle?: number[];
}
export interface NodeTotals {
  nodes: number;
  notReady: number;
  unschedulable: number;
  allocatable: number[] | null;
  used: number[] | null;
  leaving: number[] | null;
  promised: number[] | null;
  idle: number[] | null;
}
export interface Nodes extends List<NodeRow> {
  resources: string[];
  hidden?: boolean;
  totals: NodeTotals;
}

export interface Entry {
  cycle: number;
  time: string;
  kind: string;
  job?: string;
  queue?: string;
  pod?: string;
  node?: string;
  for?: string;
  action?: string;
  rule?: string;
  plan?: string;
  reason?: string;
  message?: string;
}
export interface Counts {
  bound: number;
  evicted: number;
  plans: number;
  cancelled: number;
  fulfilled: number;
  admitted: number;
  sentBack: number;
  verdicts: number;
}
export interface Cycle extends Counts {
  cycle: number;
  time: string;
  decisions?: Entry[];
  more?: number;
}
export interface Minute extends Counts {
  minute: string;
}
export interface Evictions {
  token: string;
  rows: Entry[];
  others: number;
  since: string;
}
export interface Cycles {
  token: string;
  rows: Cycle[];
  since: string;
}
export interface Summary {
  token: string;
  cycle: number;
  resources: string[];
  jobs: JobCounts;
  waiting: { reason: string; jobs: number }[];
  oldest?: string;
  queues: number;
  clusterQueues: number;
  workloads: number;
  nodes: NodeTotals;
  evictions: number;
  decisions: Minute[];
  namespaces?: string[];
  everything: boolean;
}

export type Amounts = Record<string, string>;
export interface Shortage {
  resource: string;
  needed: string;
  available: string;
  missing: string;
}
export interface NodeReason {
  kind?: string;
  reason: string;
  nodes: number;
  example: string;
  job?: string;
}
export interface Protection {
  rule?: string;
  kind?: string;
  number?: string;
  plugin?: string;
}
export interface Protected extends Protection {
  pods: number;
}
export interface Relation extends Protection {
  queue: string;
  may: boolean;
}
export interface Cause {
  code: string;
  message: string;
  waits: boolean;
  never?: boolean;
  where?: string;
  pod?: string;
  short?: Shortage[];
  nodes?: NodeReason[];
  suitable: number;
  promised?: NodeReason[];
  protected?: Protected[];
}
export interface Plan {
  id: string;
  action: string;
  rule?: string;
  since: string;
  deadline: string;
  evictions: number;
  left: number;
  leaving?: string[];
  promised?: { pod: string; node: string }[];
}
export interface Task {
  pod: string;
  status: string;
  node?: string;
  requests?: Amounts;
}
export interface Job {
  job: string;
  workload: string;
  queue: string;
  phase: string;
  admitted: boolean;
  priority: number;
  minAvailable: number;
  lacks: number;
  pods: Record<string, number>;
  holds: Amounts;
  requests: Amounts;
  created: string;
  attempts: number;
  tasks?: Task[];
  bounds?: { queue: string; resource: string; limit: string; may: string; holds: string; needed: string; exceeds: string }[];
  candidates?: { action: string; scope: string; mayLeave: number; pods?: string[]; protected?: Protected[]; notLookedAt?: boolean }[];
  plan?: Plan;
  order?: { place: number; of: number; next?: string; queuePlace: number; queues: number };
  backOffs?: { until: string; reason: string }[];
}
export interface ETA {
  earliest?: string;
  latest?: string;
  basis?: string;
  grounds?: { kind: string; jobs?: number; message: string }[];
  assumes?: string;
  unknownBecause?: string;
  never?: boolean;
  message: string;
}
export interface Neighbor {
  workload: string;
  clusterQueue?: string;
  priority: number;
}
export interface QuotaShortage {
  podSet: string;
  flavor: string;
  resource: string;
  requested: string;
  available: string;
  missing: string;
  most: string;
}
/** Queued is how a Workload stands. */
export interface Queued {
  workload: string;
  localQueue: string;
  clusterQueue?: string;
  path?: string;
  wants?: string;
  state: string;
  priority: number;
  place?: number;
  of?: number;
  ahead?: Neighbor[];
  checks?: string[];
  short?: QuotaShortage[];
  candidates?: Neighbor[];
  candidateCount: number;
  spared?: Neighbor[];
  waitsFor?: Neighbor[];
  podSets?: { name: string; count: number; flavors?: string[]; nodes?: { node: string; count: number }[] }[];
}
/** Ends is when a job is expected to end. */
export interface Ends {
  earliest?: string;
  latest?: string;
  never?: boolean;
  basis?: string;
}
export interface HeldGroup {
  name: string;
  held: string;
  kept?: string;
  jobs: number;
}
/** Holders are who holds a resource. */
export interface Holders {
  resource: string;
  where: string;
  held: string;
  kept?: string;
  total?: string;
  queues?: HeldGroup[];
  namespaces?: HeldGroup[];
  jobs?: { job: string; queue?: string; priority: number; held: string; kept?: string; keptFor?: string; ends: Ends }[];
}
export interface JobAnswer {
  holders?: Holders;
  job: Job;
  queued?: Queued;
  cause: Cause;
  also?: Cause[];
  mistakes?: { name: string; meant?: string; message: string }[];
  ahead?: { job: string; priority: number; because: string; reason?: string }[];
  proposals?: { message: string; nodes?: string[]; assumes?: string }[];
  noProposals?: string;
  eta?: ETA;
  story?: Entry[];
}
export interface QueueAnswer {
  queue: string;
  takesFrom?: Relation[];
  givesTo?: Relation[];
  jobs: { pending: number; admitted: number; running: number; waiting?: string[] };
}
export interface NodeAnswer {
  node: string;
  podCount: number;
  pods?: { pod: string; job?: string; queue?: string; status: string; requests: Amounts }[];
}

export interface ChartLine {
  measure: "used" | "waiting" | "borrowed" | "size" | "evictions";
  resource?: string;
  points: (number | null)[];
}
export interface Charts {
  subject: string;
  span: string;
  from: string;
  stepSeconds: number;
  lines: ChartLine[];
  changes?: string[];
  subjects: string[];
  left?: number;
  problem?: string;
}
