import '../people/team.css'
import { useState } from 'react'
import { problemAt } from '../data/refusal.ts'
import { Button } from '../kit/controls/button.tsx'
import { Field } from '../kit/controls/field.tsx'
import { Checkbox, NumberInput } from '../kit/controls/input.tsx'
import { notify } from '../kit/notices.tsx'
import { useConfirm } from '../kit/overlays/confirm.tsx'
import { Loaded, Refused } from '../kit/states.tsx'
import { Time } from '../kit/time.tsx'
import { useSend } from '../kit/work.ts'
import { useTeam } from '../shell/role.tsx'
import { purgeAudit, type Retention, updateRetention, useRetention } from './data.ts'

/** For how long entries and reports are kept. */
export function AuditRetention() {
  const { teamId } = useTeam()
  const found = useRetention(teamId)
  return (
    <Loaded query={found} rows={3}>
      {(policy) => <Policy policy={policy} teamId={teamId} />}
    </Loaded>
  )
}

const FIELDS = ['retentionDays', 'reportRetentionDays']

function Policy({ policy, teamId }: { policy: Retention; teamId: string }) {
  const [days, setDays] = useState<number | undefined>(policy.retentionDays)
  const [reportDays, setReportDays] = useState<number | undefined>(policy.reportRetentionDays)
  const [auto, setAuto] = useState(policy.autoDeleteEnabled)
  const confirm = useConfirm()
  const { error, busy, onSubmit } = useSend(async () => {
    await updateRetention(teamId, {
      retentionDays: days ?? Number.NaN,
      reportRetentionDays: reportDays ?? Number.NaN,
      autoDeleteEnabled: auto,
    })
    notify('Retention saved')
  })
  const purge = () =>
    confirm({
      title: 'Remove old entries now?',
      text: `Entries older than ${policy.retentionDays} days are removed for good. They are verified before; a signed anchor says where the chain begins then.`,
      label: 'Remove old entries',
      danger: true,
      work: async () => {
        const { purgedCount } = await purgeAudit(teamId)
        notify(`${purgedCount.toLocaleString()} entries were removed`)
      },
    })
  return (
    <div className="settings">
      <form onSubmit={onSubmit}>
        <Field
          label="Entries are kept for"
          required
          help="Days, at least 30"
          error={problemAt(error, 'retentionDays')}
        >
          <NumberInput value={days} min={30} step={1} onChange={setDays} />
        </Field>
        <Field
          label="Reports are kept for"
          required
          help="Days; for reports that are asked for from now on"
          error={problemAt(error, 'reportRetentionDays')}
        >
          <NumberInput value={reportDays} min={1} step={1} onChange={setReportDays} />
        </Field>
        <Checkbox checked={auto} onChange={setAuto}>
          Remove older entries once a day
        </Checkbox>
        <Refused error={error} except={FIELDS} />
        <div className="row">
          <Button type="submit" look="primary" busy={busy}>
            Save
          </Button>
          <Button look="danger" onClick={purge}>
            Remove old entries now
          </Button>
        </div>
      </form>
      <p className="quiet">
        {policy.lastPurgedAt ? (
          <>
            Old entries were last removed <Time at={policy.lastPurgedAt} />.
          </>
        ) : (
          'No entries were ever removed.'
        )}
      </p>
    </div>
  )
}
