{{- define "signalbox.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{ .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{- define "signalbox.selector" -}}
app.kubernetes.io/name: signalbox
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "signalbox.labels" -}}
{{ include "signalbox.selector" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "signalbox.account" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default (include "signalbox.name" .) }}
{{- else -}}
{{ .Values.serviceAccount.name | default "default" }}
{{- end -}}
{{- end -}}

{{- /* "true" where replicas share a store. */ -}}
{{- define "signalbox.shared" -}}
{{- if or .Values.redis.url .Values.redis.secretName }}true{{ end -}}
{{- end -}}

{{- /* What contradicts itself is refused here, not by a pod that does not start. */ -}}
{{- define "signalbox.check" -}}
{{- if not (or .Values.config.mcpServers .Values.existingConfigMap) }}{{ fail "no server: set config.mcpServers, as {crm: {url: http://crm:8000/mcp}}, or existingConfigMap" }}{{ end -}}
{{- if and .Values.redis.url .Values.redis.secretName }}{{ fail "redis.url and redis.secretName contradict each other" }}{{ end -}}
{{- if and (gt (int .Values.replicaCount) 1) (not (include "signalbox.shared" .)) }}{{ fail "replicaCount above 1 needs redis.url or redis.secretName: replicas share their sessions there" }}{{ end -}}
{{- if and .Values.autoscaling.enabled (not (include "signalbox.shared" .)) }}{{ fail "autoscaling.enabled needs redis.url or redis.secretName: replicas share their sessions there" }}{{ end -}}
{{- if and (include "signalbox.shared" .) (not .Values.peers.secretName) }}{{ fail "redis needs peers.secretName: replicas prove to each other by it that they are replicas" }}{{ end -}}
{{- if not (or .Values.auth.keys.secretName .Values.auth.issuers .Values.insecure) }}{{ fail "nobody has to show a credential: set auth.keys.secretName or auth.issuers, or insecure: true if that is what you want" }}{{ end -}}
{{- if and .Values.auth.issuers (not .Values.publicURL) (not .Values.auth.audiences) }}{{ fail "auth.issuers needs publicURL or auth.audiences: what a token must be meant for" }}{{ end -}}
{{- if and .Values.admin.enabled (not .Values.admin.secretName) }}{{ fail "admin.enabled needs admin.secretName: who asks has to show the token in it" }}{{ end -}}
{{- if and .Values.serviceMonitor.enabled (not .Values.admin.enabled) }}{{ fail "serviceMonitor.enabled needs admin.enabled: metrics are there" }}{{ end -}}
{{- end -}}
