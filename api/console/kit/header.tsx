import { Fragment, type ReactNode, useEffect, useRef } from 'react'
import { Link } from 'wouter'
import './states.css'

type HeaderProps = {
  title: string
  /** An element beside the title, such as a status. */
  beside?: ReactNode
  lead?: ReactNode
  /** The pages above this one: text and address of each. */
  crumbs?: [text: string, href: string][]
  /** The acts on this page. */
  children?: ReactNode
}

/** The heading of a page with what can be done there. It names the browser's tab too. */
export function PageHeader({ title, beside, lead, crumbs, children }: HeaderProps) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    document.title = `${title} · Perdure`
  }, [title])
  // The page is announced by its heading, as a page load would be; but not if the user is at work in it already.
  useEffect(() => {
    const { activeElement } = document
    const free = activeElement === document.body || activeElement?.closest('nav[aria-label=Console]')
    if (free) heading.current?.focus({ preventScroll: true })
  }, [])
  return (
    <>
      {crumbs && (
        <nav className="crumbs" aria-label="Where you are">
          {crumbs.map(([text, href]) => (
            <Link key={href} href={href}>
              {text}
            </Link>
          ))}
        </nav>
      )}
      <div className="page-header">
        <h1 tabIndex={-1} ref={heading}>
          {title}
        </h1>
        {beside}
        {children && <div className="row">{children}</div>}
      </div>
      {lead && <p className="lead">{lead}</p>}
    </>
  )
}

/** Terms and what they are; those without a value are left out. */
export function Facts({ facts }: { facts: [name: string, value: ReactNode][] }) {
  return (
    <dl className="facts">
      {facts.map(([name, value]) =>
        value === null || value === undefined || value === false ? (
          <Fragment key={name} />
        ) : (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ),
      )}
    </dl>
  )
}
