import { useState } from 'react'
import { deleteRule, type Rule, updateRule, useRules } from '../data/guardrails.ts'
import { readPage, useQueryState } from '../kit/address.ts'
import { Button } from '../kit/button.tsx'
import { useConfirm } from '../kit/confirm.tsx'
import { notify, notifyError } from '../kit/notices.tsx'
import { OnOff } from '../kit/onoff.tsx'
import { Pager } from '../kit/pager.tsx'
import { Empty, Loaded } from '../kit/states.tsx'
import { nameConstant } from '../kit/status.tsx'
import { Table } from '../kit/table.tsx'
import { Age } from '../kit/time.tsx'
import { useRole, useTeam } from '../shell/role.tsx'
import { RuleDialog } from './rule.tsx'

/** The team's own rules. */
export function Rules() {
  const { teamId } = useTeam()
  const mayChange = useRole()('BUILDER')
  const confirm = useConfirm()
  const [query, , linkTo] = useQueryState({ tab: 'playground', page: '' })
  const found = useRules(teamId, readPage(query.page))
  const [edited, setEdited] = useState<Rule | 'new' | null>(null)

  const turn = async (rule: Rule, enabled: boolean) => {
    try {
      await updateRule(rule.id, { enabled })
      notify(enabled ? `${rule.name} is applied from now on` : `${rule.name} is not applied any more`)
    } catch (error) {
      notifyError(error)
    }
  }
  const remove = (rule: Rule) =>
    confirm({
      title: `Delete ${rule.name}?`,
      text: 'Texts are no longer checked for it. This cannot be undone.',
      label: 'Delete the rule',
      danger: true,
      work: () => deleteRule(rule.id),
    })
  const add = mayChange && (
    <Button look="primary" icon="plus" onClick={() => setEdited('new')}>
      New rule
    </Button>
  )

  return (
    <div className="stack">
      <Loaded query={found}>
        {(list) =>
          list.totalElements === 0 ? (
            <Empty
              title="No rules"
              text="A rule flags what a pattern, a list of words, a few lines of JavaScript or a model finds."
            >
              {add}
            </Empty>
          ) : (
            <>
              <div className="row">{add}</div>
              <Table
                label="Rules"
                rows={list.content}
                keyOf={({ id }) => id}
                columns={[
                  {
                    heading: 'Rule',
                    cell: ({ name, description }) => (
                      <>
                        <span className="name">{name}</span>
                        {description && <div className="quiet said">{description}</div>}
                      </>
                    ),
                  },
                  { heading: 'Kind', cell: ({ kind }) => nameConstant(kind) },
                  { heading: 'Severity', cell: ({ severity }) => nameConstant(severity) },
                  { heading: 'Action', cell: ({ action }) => nameConstant(action) },
                  { heading: 'Changed', cell: ({ updatedAt }) => <Age at={updatedAt} /> },
                  {
                    heading: 'Applied',
                    cell: (rule) => (
                      <OnOff
                        label={`Apply ${rule.name}`}
                        on={rule.enabled}
                        mayChange={mayChange}
                        onChange={(enabled) => void turn(rule, enabled)}
                      />
                    ),
                  },
                  mayChange && {
                    heading: 'Act',
                    cell: (rule) => (
                      <div className="row">
                        <Button small aria-label={`Edit ${rule.name}`} onClick={() => setEdited(rule)}>
                          Edit
                        </Button>
                        <Button
                          small
                          look="danger"
                          aria-label={`Delete ${rule.name}`}
                          onClick={() => remove(rule)}
                        >
                          Delete
                        </Button>
                      </div>
                    ),
                  },
                ]}
              />
              <Pager page={list} linkTo={(number) => linkTo({ page: number })} />
            </>
          )
        }
      </Loaded>
      {edited && (
        <RuleDialog
          key={edited === 'new' ? 'new' : edited.id}
          teamId={teamId}
          rule={edited === 'new' ? null : edited}
          onClose={() => setEdited(null)}
        />
      )}
    </div>
  )
}
