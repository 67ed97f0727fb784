import { useState } from 'react'
import { readPage, useQueryState } from '../kit/address.ts'
import { useConfirm } from '../kit/overlays/confirm.tsx'
import { Loaded } from '../kit/states.tsx'
import { nameConstant } from '../kit/status.tsx'
import { Managed } from '../kit/tables/managed.tsx'
import { Pager } from '../kit/tables/pager.tsx'
import { Age } from '../kit/time.tsx'
import { useRole, useTeam } from '../shell/role.tsx'
import { deleteRule, type Rule, updateRule, useRules } from './data.ts'
import { RULE_KINDS, RuleDialog } from './rule.tsx'

/** The team's own rules. */
export function Rules() {
  const { teamId } = useTeam()
  const mayChange = useRole()('BUILDER')
  const confirm = useConfirm()
  const [query, , linkTo] = useQueryState({ tab: 'playground', page: '' })
  const found = useRules(teamId, readPage(query.page))
  const [edited, setEdited] = useState<Rule | 'new' | null>(null)

  const remove = (rule: Rule) =>
    confirm({
      title: `Delete ${rule.name}?`,
      text: 'Texts are no longer checked for it. This cannot be undone.',
      label: 'Delete the rule',
      danger: true,
      work: () => deleteRule(rule.id),
    })
  return (
    <div className="stack">
      <Loaded query={found}>
        {(list) => (
          <>
            <Managed
              label="Rules"
              rows={list.content}
              mayChange={mayChange}
              empty={{
                title: 'No rules',
                text: 'A rule flags what a pattern, a list of words, a few lines of JavaScript or a model finds.',
              }}
              add={{ label: 'New rule', onClick: () => setEdited('new') }}
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
                { heading: 'Kind', cell: ({ kind }) => RULE_KINDS[kind].label },
                { heading: 'Severity', cell: ({ severity }) => nameConstant(severity) },
                { heading: 'Action', cell: ({ action }) => nameConstant(action) },
                { heading: 'Changed', cell: ({ updatedAt }) => <Age at={updatedAt} /> },
              ]}
              onOff={{
                heading: 'Applied',
                verb: 'Apply',
                isOn: ({ enabled }) => enabled,
                change: ({ id }, enabled) => updateRule(id, { enabled }),
                said: ({ name }, on) =>
                  on ? `${name} is applied from now on` : `${name} is not applied any more`,
              }}
              menu={(rule) => [
                { label: 'Edit', icon: 'edit', onClick: () => setEdited(rule) },
                { label: 'Delete', icon: 'trash', danger: true, onClick: () => remove(rule) },
              ]}
            />
            <Pager page={list} linkTo={(number) => linkTo({ page: number })} />
          </>
        )}
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
