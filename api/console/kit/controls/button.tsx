import type { ComponentProps, ReactNode } from 'react'
import { Link } from 'wouter'
import './controls.css'
import { Icon, type IconName } from './icon.tsx'

type Look = { look?: 'primary' | 'danger' | 'plain'; small?: boolean; icon?: IconName; children?: ReactNode }
type ButtonProps = ComponentProps<'button'> & Look & { busy?: boolean }

/** A button. One that only has an icon needs an `aria-label`, which is shown as its title too. */
export function Button({ look, small, icon, busy, children, className, ...props }: ButtonProps) {
  return (
    <button
      type="button"
      title={children === undefined ? props['aria-label'] : undefined}
      {...props}
      disabled={props.disabled || busy}
      aria-busy={busy || undefined}
      className={nameClasses({ look, small, square: children === undefined, className })}
    >
      {busy ? <Icon name="spinner" spin /> : icon && <Icon name={icon} />}
      {children}
    </button>
  )
}

type LinkProps = Look & { href: string; download?: boolean | string; 'aria-label'?: string; title?: string }

/** A link that looks like a button. `href` is a page of the console (`/executions`), or begins with http or /api/. */
export function LinkButton({ href, look, small, icon, children, ...props }: LinkProps) {
  const className = nameClasses({ look, small, square: children === undefined })
  const inside = (
    <>
      {icon && <Icon name={icon} />}
      {children}
    </>
  )
  if (/^(https?:|\/api\/|#)/.test(href)) {
    return (
      <a {...props} href={href} className={className}>
        {inside}
      </a>
    )
  }
  return (
    <Link {...props} href={href} className={className}>
      {inside}
    </Link>
  )
}

type Classes = {
  look?: string | undefined
  small?: boolean | undefined
  square: boolean
  className?: string | undefined
}

function nameClasses({ look, small, square, className }: Classes): string {
  return ['button', look, small && 'small', square && 'square', className].filter(Boolean).join(' ')
}
