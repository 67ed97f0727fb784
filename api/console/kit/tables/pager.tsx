import { LinkButton } from '../controls/button.tsx'
import './tables.css'

type Page = {
  number: number
  size: number
  totalElements: number
  totalPages: number
  content: readonly unknown[]
}

/** Which part of a list this is, and the ways to the others; `linkTo(number)` is the address of a page. */
export function Pager({ page, linkTo }: { page: Page; linkTo: (number: number) => string }) {
  if (page.totalElements === 0) return null
  const first = page.number * page.size + 1
  const last = first + page.content.length - 1
  const total = page.totalElements.toLocaleString()
  return (
    <nav className="pager" aria-label="Pages">
      <span>
        {page.content.length === 0 ? `None of ${total} on this page` : `${first}–${last} of ${total}`}
      </span>
      {page.number > 0 && (
        <LinkButton small href={linkTo(Math.min(page.number, page.totalPages) - 1)}>
          Previous
        </LinkButton>
      )}
      {page.number + 1 < page.totalPages && (
        <LinkButton small href={linkTo(page.number + 1)}>
          Next
        </LinkButton>
      )}
    </nav>
  )
}
