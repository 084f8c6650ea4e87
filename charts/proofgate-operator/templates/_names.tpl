{{- define "proofgate-operator.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "proofgate-operator.serviceAccountName" -}}
{{- default (include "proofgate-operator.fullname" .) .Values.serviceAccount.name -}}
{{- end -}}

{{- define "proofgate-operator.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "proofgate-operator.labels" -}}
{{ include "proofgate-operator.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- /* An image, by the path of its value: with the release's tag where it has neither tag nor digest. Without an image
nothing is rendered: an upgrade that forgot it would roll every gateway that names none. */ -}}
{{- define "proofgate-operator.image" -}}
{{- $image := ternary .root.Values.operator.image .root.Values.workerImage (eq .value "operator.image") -}}
{{- if not $image -}}
{{- fail (printf "%s is not set: set it to the image that `make release-images` pushed, and keep it during upgrades with --reset-then-reuse-values." .value) -}}
{{- end -}}
{{- if contains ":" (last (splitList "/" $image)) -}}{{- $image -}}{{- else -}}{{- printf "%s:%s" $image .root.Chart.AppVersion -}}{{- end -}}
{{- end -}}

{{- /* Namespaces that are served, joined by commas; empty: all of them. */ -}}
{{- define "proofgate-operator.watched" -}}
{{- if not .Values.clusterWide -}}
{{- include "proofgate-operator.joined" (dict "names" (default (list .Release.Namespace) .Values.watchNamespaces)) -}}
{{- end -}}
{{- end -}}

{{- /* More namespaces, of which tenants alone are served, joined by commas. */ -}}
{{- define "proofgate-operator.tenants" -}}
{{- if not .Values.clusterWide -}}{{- include "proofgate-operator.joined" (dict "names" .Values.tenantNamespaces) -}}{{- end -}}
{{- end -}}

{{- /* Names, joined by commas. Linux takes 128 KiB for a variable: with more, no process would start. */ -}}
{{- define "proofgate-operator.joined" -}}
{{- $joined := join "," .names -}}
{{- if gt (len $joined) 130000 -}}
{{- fail (printf "%d namespaces are too many for one release: divide them among several releases, or set clusterWide." (len .names)) -}}
{{- end -}}
{{- $joined -}}
{{- end -}}

{{- /* What one container of the restricted PodSecurity profile may do. */ -}}
{{- define "proofgate-operator.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- define "proofgate-operator.podSecurity" -}}
runAsNonRoot: true
{{- if eq .Values.podSecurity "Restricted" }}
runAsUser: 65532
runAsGroup: 65532
{{- end }}
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- /* What the operator does, and nothing else. It deletes no volume, no Secret and no workload: what belongs to a
gateway goes by garbage collection. Pods it deletes to replace them, one by one. */ -}}
{{- define "proofgate-operator.rules" -}}
- apiGroups: [proofgate.dev]
  resources: [governancegateways, gatewaytenants]
  verbs: [get, list, watch]
- apiGroups: [proofgate.dev]
  resources: [governancegateways/status, gatewaytenants/status]
  verbs: [get, patch]
- apiGroups: [apps]
  resources: [statefulsets, deployments]
  verbs: [get, list, watch, create, patch]
- apiGroups: [batch]
  resources: [cronjobs]
  # delete: spec.keeping is gone, or its key cannot be used. It holds nothing.
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [services, configmaps, secrets, serviceaccounts, persistentvolumeclaims]
  verbs: [get, list, watch, create, patch]
- apiGroups: [""]
  resources: [pods]
  # patch: an annotation that has the kubelet renew a worker's files. delete: a worker that is to be replaced.
  verbs: [get, list, watch, patch, delete]
- apiGroups: [""]
  resources: [pods/status]
  # The condition that makes a worker's pod Ready: every HAProxy sends it connections.
  verbs: [patch]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  # delete: spec.networkPolicies became None.
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [monitoring.coreos.com]
  resources: [podmonitors]
  verbs: [get, list, watch, create, patch, delete]
# The release that looks after the namespace: another one does nothing there.
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [proofgate-served-by]
  verbs: [get, update]
- apiGroups: [""]
  resources: [events]
  # list: why the pods of a worker cannot be made, asked for while one is missing.
  verbs: [create, list]
{{- end -}}

{{- /* What it does in a namespace of tenants: it reads them and their keys, and tells them what came of it. */ -}}
{{- define "proofgate-operator.tenantRules" -}}
- apiGroups: [proofgate.dev]
  resources: [gatewaytenants]
  verbs: [get, list, watch]
- apiGroups: [proofgate.dev]
  resources: [gatewaytenants/status]
  verbs: [get, patch]
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, list, watch]
{{- end -}}
