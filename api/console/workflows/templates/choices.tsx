import { useState } from 'react'
import { go } from '../../kit/address.ts'
import { Icon } from '../../kit/controls/icon.tsx'
import { notify } from '../../kit/notices.tsx'
import { Refused } from '../../kit/states.tsx'
import { useTeam } from '../../shell/role.tsx'
import { takeTemplate } from './take.ts'
import './start.css'
import type { Template } from './template.ts'
import { TEMPLATES } from './templates.ts'

/** The templates as cards: one click makes the workflow, starts it, and goes to what it does. */
export function TemplateChoices() {
  const { teamId } = useTeam()
  const [busy, setBusy] = useState<string | null>(null)
  const [error, setError] = useState<unknown>(null)
  const take = async (template: Template) => {
    if (busy) return
    setBusy(template.id)
    setError(null)
    try {
      const executionId = await takeTemplate(template, teamId)
      notify(`${template.name}: the workflow is made, and this is its first execution`)
      go(`/executions/${executionId}`)
    } catch (refused) {
      setError(refused)
      setBusy(null)
    }
  }
  return (
    <>
      <Refused error={error} />
      <ul className="templates">
        {TEMPLATES.map((template) => (
          <li key={template.id}>
            <button
              type="button"
              className="template"
              aria-busy={busy === template.id || undefined}
              disabled={busy !== null}
              onClick={() => void take(template)}
            >
              <span className="template-icon">
                {busy === template.id ? (
                  <Icon name="spinner" spin size={18} />
                ) : (
                  <Icon name={template.icon} size={18} />
                )}
              </span>
              <strong>{template.name}</strong>
              <span className="quiet">{template.text}</span>
              <span className="then">
                <Icon name="play" size={12} />
                {template.next}
              </span>
            </button>
          </li>
        ))}
      </ul>
    </>
  )
}
