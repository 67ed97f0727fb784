-- FORM: a page of a form that its sender is to fill in, or, RECEIVED from the beginning, the page that ends one.
alter table pauses drop constraint pauses_kind_check;
alter table pauses add constraint pauses_kind_check check (kind in ('APPROVAL', 'EVENT', 'FORM')) not valid;
