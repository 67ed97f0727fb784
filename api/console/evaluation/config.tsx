import '../people/team.css'
import { useState } from 'react'
import { problemAt } from '../data/refusal.ts'
import { Button } from '../kit/controls/button.tsx'
import { Field } from '../kit/controls/field.tsx'
import { Checkbox, NumberInput } from '../kit/controls/input.tsx'
import { notify } from '../kit/notices.tsx'
import { useConfirm } from '../kit/overlays/confirm.tsx'
import { Loaded, Refused } from '../kit/states.tsx'
import { useSend } from '../kit/work.ts'
import { useRole, useTeam } from '../shell/role.tsx'
import {
  type ConfigPatch,
  type EvalConfig,
  resetEvalConfig,
  resetTeamEvalConfig,
  updateEvalConfig,
  updateTeamEvalConfig,
  useEvalConfig,
  useTeamEvalConfig,
} from './data.ts'
import { DimensionFields, type Judge, JudgeFields } from './judge.tsx'

/** Whether the runs of a workflow are judged, by whom, and in what. */
export function ConfigView({ workflowId }: { workflowId: string }) {
  const mayChange = useRole()('BUILDER')
  const found = useEvalConfig(workflowId)
  return (
    <Loaded query={found}>
      {(config) => (
        <ConfigForm
          key={config.updatedAt ?? 'none'}
          config={config}
          mayChange={mayChange}
          lead={
            config.id === null
              ? "What the team has set counts for this workflow. What you change here is the workflow's own."
              : 'This workflow has settings of its own; of the rest those of the team count.'
          }
          onSave={(patch) => updateEvalConfig(workflowId, patch)}
          reset={{
            title: "Use the team's settings?",
            text: 'What is set for this workflow is taken back.',
            label: "Use the team's settings",
            work: () => resetEvalConfig(workflowId),
          }}
        />
      )}
    </Loaded>
  )
}

/** The same for all workflows of the team that say nothing themselves. */
export function TeamConfigView() {
  const { teamId } = useTeam()
  const mayChange = useRole()('ADMIN')
  const found = useTeamEvalConfig(teamId)
  return (
    <Loaded query={found}>
      {(config) => (
        <ConfigForm
          key={`${teamId} ${config.updatedAt}`}
          config={config}
          mayChange={mayChange}
          lead="What counts for all workflows of the team that have no settings of their own."
          onSave={(patch) => updateTeamEvalConfig(teamId, patch)}
          reset={{
            title: "Take the team's settings back?",
            text: 'Only workflows with settings of their own are judged then.',
            label: 'Take them back',
            work: () => resetTeamEvalConfig(teamId),
          }}
        />
      )}
    </Loaded>
  )
}

const NAMES = ['evalProvider', 'evalModel', 'evalCredentialId'] as const
const FIELDS = [...NAMES, 'evalSamplingRate', 'evalFailureThreshold', 'evalDimensions']

type FormProps = {
  config: Omit<EvalConfig, 'workflowId'>
  mayChange: boolean
  lead: string
  onSave: (patch: ConfigPatch) => Promise<unknown>
  /** How what is set here is taken back. */
  reset: { title: string; text: string; label: string; work: () => Promise<unknown> }
}

function ConfigForm({ config, mayChange, lead, onSave, reset }: FormProps) {
  const confirm = useConfirm()
  const { effective } = config
  const [enabled, setEnabled] = useState(effective.evalEnabled)
  const [tells, setTells] = useState(effective.evalNotifyFailures)
  const [rate, setRate] = useState<number | undefined>(effective.evalSamplingRate)
  const [threshold, setThreshold] = useState<number | undefined>(effective.evalFailureThreshold)
  const [dimensions, setDimensions] = useState(effective.evalDimensions)
  const [judge, setJudge] = useState<Judge>({
    provider: effective.evalProvider ?? '',
    model: effective.evalModel ?? '',
    credentialId: effective.evalCredentialId ?? '',
  })
  const { error, busy, onSubmit } = useSend(async () => {
    const provider = (judge.provider || null) as EvalConfig['evalProvider']
    const wanted = {
      evalEnabled: enabled,
      evalNotifyFailures: tells,
      evalProvider: provider,
      evalModel: judge.model || null,
      evalCredentialId: judge.credentialId || null,
      evalSamplingRate: rate ?? null,
      evalFailureThreshold: threshold ?? null,
      evalDimensions: dimensions,
    }
    // What counts anyway is not made a word of its own.
    const same = (key: keyof typeof wanted) =>
      JSON.stringify(wanted[key]) === JSON.stringify(effective[key]) && config[key] === null
    const keys = (Object.keys(wanted) as (keyof typeof wanted)[]).filter((key) => !same(key))
    await onSave(Object.fromEntries(keys.map((key) => [key, wanted[key]])))
    notify('Saved')
  })

  return (
    <form className="settings stack" onSubmit={onSubmit}>
      <p className="quiet">{lead}</p>
      <Checkbox checked={enabled} disabled={!mayChange} onChange={setEnabled}>
        A model judges runs as they end
      </Checkbox>
      <JudgeFields
        value={judge}
        onChange={setJudge}
        empty="None"
        disabled={!mayChange}
        error={error}
        names={NAMES}
      />
      <div className="pairs">
        <Field
          label="Percent of the runs"
          help="Of those that succeed."
          error={problemAt(error, 'evalSamplingRate')}
        >
          <NumberInput value={rate} onChange={setRate} disabled={!mayChange} />
        </Field>
        <Field
          label="Lowest score that passes"
          help="From 1 to 5."
          error={problemAt(error, 'evalFailureThreshold')}
        >
          <NumberInput value={threshold} onChange={setThreshold} disabled={!mayChange} />
        </Field>
      </div>
      <DimensionFields value={dimensions} onChange={setDimensions} disabled={!mayChange} />
      {problemAt(error, 'evalDimensions') && (
        <p className="failure" role="alert">
          Dimensions: {problemAt(error, 'evalDimensions')}
        </p>
      )}
      <Checkbox checked={tells} disabled={!mayChange} onChange={setTells}>
        Runs that score too low start playbooks
      </Checkbox>
      <Refused error={error} except={FIELDS} />
      {mayChange && (
        <div className="row">
          <Button type="submit" look="primary" busy={busy}>
            Save
          </Button>
          {config.id !== null && (
            <Button onClick={() => confirm({ ...reset, danger: true })}>{reset.label}</Button>
          )}
        </div>
      )}
    </form>
  )
}
