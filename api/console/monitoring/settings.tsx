import '../people/team.css'
import { useState } from 'react'
import { problemAt } from '../data/refusal.ts'
import { Button } from '../kit/controls/button.tsx'
import { Field, FieldGroup } from '../kit/controls/field.tsx'
import { Checkbox, NumberInput } from '../kit/controls/input.tsx'
import { notify } from '../kit/notices.tsx'
import { Loaded, Refused } from '../kit/states.tsx'
import { useSend } from '../kit/work.ts'
import { useRole, useTeam } from '../shell/role.tsx'
import { CHANNEL_TYPES, useChannels } from './channels/data.ts'
import { type MonitoringConfig, updateMonitoringConfig, useMonitoringConfig } from './data.ts'

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
  const [told, setTold] = useState<readonly string[]>(config.notificationChannels)
  const shown = { ...config.alertThresholds, ...thresholds }
  const { error, busy, onSubmit } = useSend(async () => {
    await updateMonitoringConfig(teamId, {
      ...flags,
      alertThresholds: thresholds,
      notificationChannels: [...told],
    })
    setFlags({})
    setThresholds({})
    notify('Saved')
  })

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
    <form className="settings" onSubmit={onSubmit}>
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
      <Places
        teamId={teamId}
        asked={config.notificationChannels}
        told={told}
        disabled={!mayChange}
        onChange={setTold}
        error={problemAt(error, 'notificationChannels')}
      />
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

type PlacesProps = {
  teamId: string
  /** What the API has now. */
  asked: readonly string[]
  told: readonly string[]
  disabled: boolean
  onChange: (told: readonly string[]) => void
  error: string | undefined
}

/** Where alerts are told: by e-mail, and by the team's channels. */
function Places({ teamId, asked, told, disabled, onChange, error }: PlacesProps) {
  const { data: channels = [] } = useChannels(teamId)
  const known: [string, string][] = [
    ['email', "The team's ADMINs, by e-mail"],
    ...channels.map(({ id, name, type }): [string, string] => [id, `${name} (${CHANNEL_TYPES[type]})`]),
  ]
  // Also what the API was given beside channels, such as the name of a type: it can be taken out here.
  const others = asked.filter((one) => known.every(([value]) => value !== one))
  const places = [...known, ...others.map((one): [string, string] => [one, one])]
  return (
    <FieldGroup label="Tell">
      {places.map(([value, label]) => (
        <Checkbox
          key={value}
          checked={told.includes(value)}
          disabled={disabled}
          onChange={(on) => onChange(on ? [...told, value] : told.filter((one) => one !== value))}
        >
          {label}
        </Checkbox>
      ))}
      {error && <p className="wrong">{error}</p>}
    </FieldGroup>
  )
}
