{{- define "vnettop-export.labels" -}}
app.kubernetes.io/name: vnettop-export
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "vnettop-export.address" -}}
{{- if eq .Values.listen "nodeIP" }}[$(NODE_IP)]{{ else if eq .Values.listen "loopback" }}127.0.0.1{{ end }}:{{ .Values.port }}
{{- end }}
{{- define "vnettop-export.image" -}}
{{- with .Values.image.digest }}{{ $.Values.image.repository }}@{{ . }}{{ else }}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{/* Whether samples come; with TCP only whether the port answers. */}}
{{- define "vnettop-export.probe" -}}
{{- $scheme := .Values.probeScheme | default (ternary "HTTPS" "HTTP" (ne .Values.webConfigSecret "")) -}}
{{- if ne $scheme "TCP" -}}
httpGet:
  path: /-/healthy
  scheme: {{ $scheme }}
{{- else -}}
tcpSocket:
{{- end }}
  port: metrics
  {{- if eq .Values.listen "loopback" }}
  host: 127.0.0.1
  {{- end }}
{{- end }}
