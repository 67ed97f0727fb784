import { LinkButton } from '../../kit/controls/button.tsx'
import { PageHeader } from '../../kit/header.tsx'
import { Empty } from '../../kit/states.tsx'
import { useRole } from '../../shell/role.tsx'
import { TemplateChoices } from './choices.tsx'

/** The ways to a new workflow: a template, nothing, a document. */
export function StartPage() {
  const may = useRole()
  if (!may('BUILDER')) {
    return (
      <>
        <PageHeader title="New workflow" crumbs={[['Workflows', '/workflows']]} />
        <Empty title="Not yours to make" text="A BUILDER or an ADMIN of the team makes workflows." />
      </>
    )
  }
  return (
    <>
      <PageHeader
        title="New workflow"
        crumbs={[['Workflows', '/workflows']]}
        lead="Take a template: it is made, started, and yours to change. Or begin with nothing."
      >
        <LinkButton href="/workflows/import" icon="upload">
          Import
        </LinkButton>
        <LinkButton href="/workflows/new" look="primary" icon="plus">
          Empty canvas
        </LinkButton>
      </PageHeader>
      <TemplateChoices />
    </>
  )
}
