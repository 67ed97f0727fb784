import { type FormEvent, useState } from 'react'
import { type MonitoringConfig, updateMonitoringConfig, useMonitoringConfig } from '../data/monitoring.ts'
import { problemAt } from '../data/refusal.ts'
import { Button } from '../kit/button.tsx'
import { Field, FieldGroup } from '../kit/field.tsx'
import { Checkbox, NumberInput, TextInput } from '../kit/input.tsx'
import { notify } from '../kit/notices.tsx'
import { Loaded, Refused } from '../kit/states.tsx'
import { useRole, useTeam } from '../shell/role.tsx'

/** What a team is alerted of, and where. */
export function AlertSettings() {
  const { teamId } = useTeam()
  const found = useMonitoringConfig(teamId)
  return (
    <Loaded query={found}>{(config) => <ConfigForm key={teamId} teamId={teamId} config={config} />}</Loaded>
  )
}

const FLAGS = [
  ['anomalyDetectionEnabled', 'Anomalies: spikes of tokens, failures, slow executions'],
  ['driftAlertEnabled', 'Drift: workflows are given, or answer, something else than usual'],
  ['sentimentTrackingEnabled', "Sentiment: the mood of users' messages in chats shifts"],
] as const

const PATHS = ['tokenUsageSpike', 'errorRateThreshold', 'latencyThreshold'].map(
  (name) => `alertThresholds.${name}`,
)

function ConfigForm({ teamId, config }: { teamId: string; config: MonitoringConfig }) {
  const mayChange = useRole()('ADMIN')
  const [flags, setFlags] = useState<Partial<MonitoringConfig>>({})
  const [thresholds, setThresholds] = useState<Partial<MonitoringConfig['alertThresholds']>>({})
  const [channels, setChannels] = useState(config.notificationChannels.join(', '))
  const [error, setError] = useState<unknown>(null)
  const [busy, setBusy] = useState(false)
  const shown = { ...config.alertThresholds, ...thresholds }

  async function save(event: FormEvent) {
    event.preventDefault()
    setBusy(true)
    setError(null)
    try {
      const names = channels.split(',').map((name) => name.trim())
      await updateMonitoringConfig(teamId, {
        ...flags,
        alertThresholds: thresholds,
        notificationChannels: names.filter(Boolean),
      })
      setFlags({})
      setThresholds({})
      notify('Saved')
    } catch (refused) {
      setError(refused)
    } finally {
      setBusy(false)
    }
  }

  const threshold = (name: keyof MonitoringConfig['alertThresholds'], label: string, help: string) => (
    <Field label={label} help={help} error={problemAt(error, `alertThresholds.${name}`)}>
      <NumberInput
        value={shown[name]}
        disabled={!mayChange}
        onChange={(value) => setThresholds((before) => ({ ...before, [name]: value }))}
      />
    </Field>
  )

  return (
    <form className="stack" onSubmit={(event) => void save(event)}>
      <FieldGroup label="Watch for">
        {FLAGS.map(([name, label]) => (
          <Checkbox
            key={name}
            checked={flags[name] ?? config[name]}
            disabled={!mayChange}
            onChange={(checked) => setFlags((before) => ({ ...before, [name]: checked }))}
          >
            {label}
          </Checkbox>
        ))}
      </FieldGroup>
      {threshold(
        'tokenUsageSpike',
        'Token spike',
        'How many times the expected tokens of an hour raise an alert.',
      )}
      {threshold(
        'errorRateThreshold',
        'Error rate',
        'Which fraction of executions or calls may fail: 0.1 is 10 %.',
      )}
      {threshold(
        'latencyThreshold',
        'Latency in ms',
        'What 95 % of the executions or calls should stay under.',
      )}
      <Field
        label="Tell"
        help="email (the team's ADMINs), slack, webhook, or ids of channels, separated by commas."
        error={problemAt(error, 'notificationChannels')}
      >
        <TextInput value={channels} disabled={!mayChange} onChange={setChannels} />
      </Field>
      <Refused error={error} except={[...PATHS, 'notificationChannels']} />
      {mayChange && (
        <div className="row">
          <Button type="submit" look="primary" busy={busy}>
            Save
          </Button>
        </div>
      )}
    </form>
  )
}
